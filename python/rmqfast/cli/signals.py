"""How a command ends that goes on until somebody ends it."""

from __future__ import annotations

import queue
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

__all__ = ["StopSignals", "ended_by_signals"]

#: Seconds after which a wait looks again: a signal that another thread got is handled between two waits.
_INTERVAL = 1.0


class StopSignals:
    """SIGTERM and Ctrl-C, for a command that serves until one comes; in the block they do nothing but end `wait`.

    Attributes:
        is_noted: One of them came.
    """

    def __init__(self) -> None:
        self.is_noted: bool = False
        # No `threading.Event`: the handler runs in the thread that waits, at any line of it. Where that thread has the
        # event's lock just then, `set` waits for a lock that nobody gives back. `SimpleQueue.put` may come in between.
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()

    def wait(self) -> bool:
        """Waits for one of them, a second at most; whether one came."""
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
        self._wakes.put(None)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Ctrl-C and SIGTERM end the command with 0, once what runs in the block has shut down."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise SystemExit(0) from None
    finally:
        signal.signal(signal.SIGTERM, before)
