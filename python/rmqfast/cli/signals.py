"""Ends commands that run until SIGTERM or Ctrl-C."""

from __future__ import annotations

import queue
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

#: Seconds between checks; Python handles a signal that another thread received only between two waits.
_INTERVAL = 1.0


class StopSignals:
    """Receives SIGTERM and Ctrl-C for a command that serves. In the block, a signal only ends `wait`.

    `is_noted` says whether a signal has arrived.
    """

    def __init__(self) -> None:
        self.is_noted: bool = False
        # Not a `threading.Event`: the handler interrupts the waiting thread at any line. If that thread holds the
        # event's lock, `set` would wait for the lock forever. `SimpleQueue.put` is reentrant.
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()

    def wait(self) -> bool:
        """Waits up to one second for a signal. Returns whether one has arrived."""
        if not self.is_noted:
            with suppress(queue.Empty):
                self._wakes.get(timeout=_INTERVAL)
        return self.is_noted

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, *_: Any) -> None:
        self.is_noted = True
        # Ends the wait at once, not only after `_INTERVAL`.
        self._wakes.put(None)


@contextmanager
def end_on_signals() -> Iterator[None]:
    """Ends the command with exit code 0 after Ctrl-C or SIGTERM. The block shuts down first."""
    # SIGTERM raises KeyboardInterrupt, too, so that one handler suffices.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise SystemExit(0) from None
    finally:
        signal.signal(signal.SIGTERM, before)
