"""Loggers whose handlers may use an rmqfast client, for example to send log records to a topic.

So handlers never run while the thread holds a lock of rmqfast, nor inside another handler.
"""

from __future__ import annotations

import logging
import threading

from rmqfast.threads import new_lock, new_rlock

__all__ = ["QuietLock", "logger_of"]

#: Records that a handler logs are handled after it; records logged while handling these are dropped.
_DEEPEST = 2


class _Lines(threading.local):
    """The records that a thread has logged and that wait for their handlers.

    Attributes:
        locks: Number of quiet locks that the thread holds.
        depth: Depth of the record that is handled now; 0 if none is.
        handled: The record that is handled now.
        waiting: The delayed records with their depths.
    """

    def __init__(self) -> None:
        self.locks = self.depth = 0
        self.handled: logging.LogRecord | None = None
        self.waiting: list[tuple[int, logging.LogRecord]] = []

    def add(self, record: logging.LogRecord) -> None:
        """Adds a record. It is handled as soon as no lock is held."""
        # otherwise a handler that logs would never end
        if self.depth < _DEEPEST:
            self.waiting.append((self.depth + 1, record))
        self.handle_all()

    def handle_all(self) -> None:
        """Handles the waiting records. Does nothing if a lock is held or a handler is running."""
        while self.waiting and not self.locks and not self.depth:
            self.depth, self.handled = self.waiting.pop(0)
            try:
                logging.getLogger(self.handled.name).handle(self.handled)
            finally:
                self.depth, self.handled = 0, None


_lines = _Lines()


class _Filter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        # the second time, when its handling is due
        if record is _lines.handled:
            return True
        _lines.add(record)
        # the logger drops the record: it is handled later
        return False


_FILTER = _Filter()


def logger_of(name: str) -> logging.Logger:
    """Returns the logger of a module. Its handlers only run while the thread holds no `QuietLock`."""
    logger = logging.getLogger(name)
    # as the first filter: the other filters run when the record is handled
    if _FILTER not in logger.filters:
        logger.filters.insert(0, _FILTER)
    return logger


class QuietLock:
    """A lock for code that logs. Log handlers run only after the thread has released all its quiet locks."""

    def __init__(self, *, reentrant: bool = False) -> None:
        self._lock = new_rlock() if reentrant else new_lock()

    def acquire(self, *, blocking: bool = True, timeout: float = -1) -> bool:
        if not self._lock.acquire(blocking, timeout):
            return False
        _lines.locks += 1
        return True

    def release(self) -> None:
        """Releases the lock. If it was the thread's last quiet lock, handles the waiting records."""
        _lines.locks -= 1
        self._lock.release()
        # after the release, so that a handler may acquire the lock
        _lines.handle_all()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()
