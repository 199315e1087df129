"""Keeps threads of other libraries out of Python code when the interpreter ends.

Such a thread, as DataFusion and Polars have them, would never return from its call: the process would abort, or hang.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from contextlib import contextmanager

from rmqfast.system import after_fork
from rmqfast.threads import new_condition, sleep

# A thread that has left the gate still hands its batch over, for which it needs the interpreter; where others take the
# processors, it may have to wait for one.
_QUIET_SECONDS, _QUIET_TIMES = 0.01, 8


class ExitGate:
    """Counts the calls of other libraries' threads. It closes when the interpreter ends."""

    def __init__(self) -> None:
        self._is_registered = False
        self._clear()
        after_fork(self._clear)

    def begin(self) -> None:
        """Counts a read, for which threads may call at any time until `end`."""
        with self._changed:
            if not self._is_registered:
                atexit.register(self.close)
                self._is_registered = True
            self._reads += 1

    def end(self) -> None:
        with self._changed:
            self._reads -= 1

    @contextmanager
    def call(self) -> Iterator[bool]:
        """Counts a call while it runs. Gives whether it may do its work; otherwise it is to return at once."""
        with self._changed:
            self._running += 1
            self._calls += 1
        try:
            yield not self._is_closed
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def close(self) -> None:
        """Waits for the calls that run, and lets later ones do nothing."""
        self._is_closed = True
        quiet = 0
        while self._reads and quiet < _QUIET_TIMES:
            with self._changed:
                calls = self._calls
                self._changed.wait_for(lambda: self._running == 0)
            # threads that have come meanwhile learn that there is nothing more
            sleep(_QUIET_SECONDS)
            quiet = quiet + 1 if self._calls == calls else 0

    def _clear(self) -> None:
        """Forgets the calls in a fork, which has none of the threads."""
        self._changed = new_condition()
        self._reads = self._running = self._calls = 0
        self._is_closed = False


#: The gate of this process.
GATE = ExitGate()
