"""Runs the callbacks of asynchronous requests, on threads of its own.

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

#: Called once with the answer of an asynchronous request, or with its error.
OnDone: TypeAlias = Callable[[Response | RemotingError], None]

#: Ended requests that a thread takes at once; a slow callback delays the others of its batch.
_AT_ONCE = 64
#: Seconds that a thread waits before it looks again; new work and `close` wake it earlier.
_WAIT = 60.0


class Callbacks:
    """The threads that run callbacks."""

    def __init__(self, native: NativeConnections, threads: int) -> None:
        self._native = native
        self._own: set[int] = set()
        names = [f"rmqfast-callback-{n}" for n in range(threads)]
        self._threads = [new_thread(self._run, name=name) for name in names]
        for thread in self._threads:
            thread.start()
        # Last, since Rust queues ended requests only if threads will take them.
        native.expect_takers()

    @property
    def is_own_thread(self) -> bool:
        """Whether the calling thread runs callbacks. It then must not wait for another callback."""
        return thread_ident() in self._own

    def join(self, patience: float) -> None:
        """Waits until queued callbacks have run, at most `patience` seconds."""
        deadline = monotonic() + patience
        for thread in self._threads:
            if not is_current(thread):
                # The limit is for all threads together, so that `close` ends even if callbacks hang.
                thread.join(max(0.0, deadline - monotonic()))

    def _run(self) -> None:
        self._own.add(thread_ident())
        while (outcomes := self._native.take(_AT_ONCE, _WAIT)) is not None:
            for on_done, outcome in outcomes:
                # Answers arrive as tuples; errors and decoded results are passed on unchanged.
                end = response_of(outcome) if outcome.__class__ is tuple else outcome
                try:
                    on_done(end)
                except BaseException:  # noqa: BLE001  # a defect in one callback must not end the others
                    _log.exception("%r failed with the end of a request", on_done)
