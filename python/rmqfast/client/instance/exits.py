"""Shuts clients down when the interpreter ends: the youngest first, and within a few seconds.

Threads that come back from waiting while the interpreter is being taken down would take the process with them.
"""

from __future__ import annotations

import atexit
import weakref
from enum import StrEnum
from typing import Protocol

from rmqfast.logs import logger_of
from rmqfast.system import after_fork, monotonic
from rmqfast.threads import new_lock

_log = logger_of(__name__)

#: Seconds that all of them may take together.
LONGEST = 5.0


class ServiceState(StrEnum):
    """The lifecycle of a client: it starts once, and ends once."""

    CREATE_JUST = "CREATE_JUST"
    RUNNING = "RUNNING"
    SHUTDOWN_ALREADY = "SHUTDOWN_ALREADY"
    START_FAILED = "START_FAILED"


class EndsAtExit(Protocol):
    """Has threads or connections that must end before the interpreter does."""

    def end_at_exit(self, deadline: float) -> None:
        """Ends it, at the end of the interpreter."""


class Exits:
    """The objects to end at exit, by weak references."""

    _living: list[weakref.ref[EndsAtExit]]

    def __init__(self) -> None:
        self._is_registered = False
        self._clear()
        after_fork(self._clear)

    def add(self, living: EndsAtExit) -> None:
        """Ends it when the interpreter ends, unless it is removed before."""
        with self._lock:
            self._living = [ref for ref in self._living if ref() is not None]
            self._living.append(weakref.ref(living))
            if not self._is_registered:
                # what is registered last is called first: connections, which are there already, end behind this
                atexit.register(self.end_all)
                self._is_registered = True

    def remove(self, living: EndsAtExit) -> None:
        """Removes an object that has ended."""
        with self._lock:
            self._living = [ref for ref in self._living if ref() not in {None, living}]

    def end_all(self) -> None:
        """Ends all of them, within `LONGEST` seconds."""
        deadline = monotonic() + LONGEST
        with self._lock:
            living = [each for ref in reversed(self._living) if (each := ref()) is not None]
            self._living = []
        for each in living:
            try:
                each.end_at_exit(deadline)
            except Exception:  # noqa: BLE001 - the others have to end, too
                _log.exception("%r could not be ended", each)

    def _clear(self) -> None:
        """In a fork nothing of its parent's runs, and its parent's threads own none of its locks."""
        self._lock = new_lock()
        self._living = []


#: Of this process.
EXITS = Exits()
