"""Calls `on_done` of asynchronous requests, on threads of its own.

Source: `NettyRemotingAbstract.executeInvokeCallback`, `ResponseFuture`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from rmqfast._native import Connections as NativeConnections
from rmqfast.errors import RemotingError
from rmqfast.logs import logger_of
from rmqfast.remoting.channel import response_of
from rmqfast.remoting.response import Response
from rmqfast.system import monotonic
from rmqfast.threads import is_current, new_thread, thread_ident

_log = logger_of(__name__)

#: Takes how an asynchronous request ended.
OnDone: TypeAlias = Callable[[Response | RemotingError], None]

#: Requests that a thread takes at once, at most: those behind a callback that takes time wait for it.
_AT_ONCE = 64
#: How long a thread waits before it looks whether there is anything; it is woken by what comes, and by the end.
_WAIT = 60.0


class Callbacks:
    """Threads that call back."""

    def __init__(self, native: NativeConnections, threads: int) -> None:
        self._native = native
        self._own: set[int] = set()
        names = [f"rmqfast-callback-{n}" for n in range(threads)]
        self._threads = [new_thread(self._run, name=name) for name in names]
        for thread in self._threads:
            thread.start()
        # last: Rust queues ends only once there are threads that take them
        native.expect_takers()

    @property
    def is_own_thread(self) -> bool:
        """Whether this thread calls back; it must not wait for another callback."""
        return thread_ident() in self._own

    def join(self, patience: float) -> None:
        """Waits for the callbacks that are due."""
        deadline = monotonic() + patience
        for thread in self._threads:
            if not is_current(thread):
                # the time is for all threads together: `close` ends though callbacks hang
                thread.join(max(0.0, deadline - monotonic()))

    def _run(self) -> None:
        self._own.add(thread_ident())
        while (outcomes := self._native.take(_AT_ONCE, _WAIT)) is not None:
            for on_done, outcome in outcomes:
                # an answer becomes a value, what was made of one stays as it is
                end = response_of(outcome) if outcome.__class__ is tuple else outcome
                try:
                    on_done(end)
                except BaseException:  # noqa: BLE001 - a defect of one callback is not the end of the others
                    _log.exception("%r failed with the end of a request", on_done)
