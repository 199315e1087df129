"""Ends clients whose loop is closed: nobody can use them any more, and they would keep their queues from others."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Protocol

from rmqfast.client.instance.scheduler import Scheduler
from rmqfast.system import after_fork
from rmqfast.threads import new_lock

__all__ = ["WATCH", "LoopWatch"]

#: Seconds between two looks.
_INTERVAL = 1.0


class OfLoop(Protocol):
    """The link between a client and its event loop."""

    @property
    def has_lost_loop(self) -> bool:
        """Whether the client runs, and its loop is closed."""

    def leave(self) -> None:
        """Ends the client."""


class LoopWatch:
    """Looks each second at the clients that run; its thread is there while there are any."""

    _clients: set[weakref.ref[OfLoop]]
    _scheduler: Scheduler | None

    def __init__(self, interval: float = _INTERVAL) -> None:
        self._interval = interval
        self._clear()
        after_fork(self._clear)

    def add(self, client: OfLoop) -> Callable[[], None]:
        """Looks at a client from now on; what is returned ends that."""
        reference = weakref.ref(client)
        with self._lock:
            self._clients.add(reference)
            if self._scheduler is None:
                self._scheduler = Scheduler("rmqfast-loops")
                self._scheduler.every(self._interval, self._interval, self._look)
        return lambda: self._remove(reference)

    def _remove(self, reference: weakref.ref[OfLoop]) -> None:
        with self._lock:
            self._clients.discard(reference)
            if self._clients or self._scheduler is None:
                return
            scheduler, self._scheduler = self._scheduler, None
        scheduler.stop(0)

    def _look(self) -> None:
        for reference in list(self._clients):
            client = reference()
            if client is None:
                self._remove(reference)
            elif client.has_lost_loop:
                client.leave()

    def _clear(self) -> None:
        """A fork has none of its parent's clients."""
        self._lock = new_lock()
        self._clients = set()
        self._scheduler = None


#: Of this process.
WATCH = LoopWatch()
