"""Loggers whose handlers may use a client, as one that sends lines to a topic.

So no handler runs while a thread of ours holds a lock that others need, nor within a handler that already runs.
"""

from __future__ import annotations

import logging
import threading

from rmqfast.threads import new_lock, new_rlock

__all__ = ["QuietLock", "logger_of"]

#: Lines that are logged as a line is handled are handled after it; those that are logged as these are, are dropped.
_DEEPEST = 2


class _Lines(threading.local):
    """The lines of a thread that wait.

    Attributes:
        locks: How many quiet locks the thread holds.
        depth: How deep the line is that is handled now; 0 where none is.
        handled: That line.
        waiting: The others, with their depths.
    """

    def __init__(self) -> None:
        self.locks = self.depth = 0
        self.handled: logging.LogRecord | None = None
        self.waiting: list[tuple[int, logging.LogRecord]] = []

    def add(self, record: logging.LogRecord) -> None:
        """Has a line handled as soon as may be."""
        if self.depth < _DEEPEST:
            self.waiting.append((self.depth + 1, record))
        self.handle_all()

    def handle_all(self) -> None:
        """Handles the lines that wait, unless they have to wait on."""
        while self.waiting and not self.locks and not self.depth:
            self.depth, self.handled = self.waiting.pop(0)
            try:
                logging.getLogger(self.handled.name).handle(self.handled)
            finally:
                self.depth, self.handled = 0, None


_lines = _Lines()


class _Filter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        if record is _lines.handled:
            return True
        _lines.add(record)
        return False


_FILTER = _Filter()


def logger_of(name: str) -> logging.Logger:
    """Returns the logger of a module: its handlers run when the thread holds no `QuietLock`."""
    logger = logging.getLogger(name)
    # first: a line passes the other filters as it is handled
    if _FILTER not in logger.filters:
        logger.filters.insert(0, _FILTER)
    return logger


class QuietLock:
    """A lock for work that logs: handlers run after the thread has released all such locks."""

    def __init__(self, *, reentrant: bool = False) -> None:
        self._lock = new_rlock() if reentrant else new_lock()

    def acquire(self, *, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquires the lock, like `threading.Lock.acquire`."""
        if not self._lock.acquire(blocking, timeout):
            return False
        _lines.locks += 1
        return True

    def release(self) -> None:
        """Releases it, and then has the lines handled that waited for it."""
        _lines.locks -= 1
        self._lock.release()
        _lines.handle_all()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()
