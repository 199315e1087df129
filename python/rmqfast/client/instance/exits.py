"""Shuts down clients when the interpreter ends: the newest client first, and all within a few seconds.

Otherwise threads that wake up while the interpreter is finalized would crash the process.

Source: RocketMQ's `ServiceState`.
"""

from __future__ import annotations

import atexit
import os
import sys
import warnings
import weakref
from enum import StrEnum
from typing import Protocol

from rmqfast.logs import logger_of
from rmqfast.system import after_fork, monotonic
from rmqfast.threads import new_lock

_log = logger_of(__name__)

#: Seconds that all objects may take together.
LONGEST = 5.0


class ServiceState(StrEnum):
    """The state of a client, which can start once and end once."""

    CREATE_JUST = "CREATE_JUST"
    RUNNING = "RUNNING"
    SHUTDOWN_ALREADY = "SHUTDOWN_ALREADY"
    START_FAILED = "START_FAILED"


class EndsAtExit(Protocol):
    """An object whose threads or connections must end before the interpreter does."""

    def end_at_exit(self, deadline: float) -> None:
        """Called when the interpreter ends. Must return by `deadline`, a time of `time.monotonic`."""


class Exits:
    """The objects to end with the interpreter. They are held by weak references."""

    _living: list[weakref.ref[EndsAtExit]]

    def __init__(self) -> None:
        self._is_registered = False
        self._clear()
        after_fork(self._clear)

    def add(self, living: EndsAtExit) -> None:
        """Registers an object that must end before the interpreter does."""
        with self._lock:
            self._living = [ref for ref in self._living if ref() is not None]
            self._living.append(weakref.ref(living))
            if not self._is_registered:
                # atexit calls the last registered function first: connections, registered earlier, end after clients
                atexit.register(self.end_all)
                self._is_registered = True

    def remove(self, living: EndsAtExit) -> None:
        with self._lock:
            self._living = [ref for ref in self._living if ref() not in {None, living}]

    def end_all(self) -> None:
        """Ends all objects, within `LONGEST` seconds."""
        deadline = monotonic() + LONGEST
        with self._lock:
            living = [each for ref in reversed(self._living) if (each := ref()) is not None]
            self._living = []
        for each in living:
            try:
                each.end_at_exit(deadline)
            except Exception:  # noqa: BLE001 - the other objects must still end
                _log.exception("%r could not be ended", each)

    def _clear(self) -> None:
        """Forgets all objects in a fork, which has none of their threads. Replaces locks that the parent may hold."""
        self._lock = new_lock()
        self._living = []


#: The objects of this process.
EXITS = Exits()


_OWNED = "_is_owned"


def warn_unclosed(client: object, pid: int, named: str, step: str = "shutdown()") -> None:
    """Warns of a client that is dropped but still runs. Called by `__del__`; silent in forks and when Python ends."""
    if os.getpid() == pid and not sys.is_finalizing() and _OWNED not in vars(client):
        text = f"{named} was dropped and runs on: call {step}, or use it as a context manager"
        warnings.warn(text, ResourceWarning, source=client, stacklevel=2)


def leave_warning_to_owner(client: object) -> None:
    """Suppresses the warning for a client that belongs to another client, since the owner warns."""
    vars(client)[_OWNED] = True
