"""Where a follower may begin without ending a send that waits.

The first report of a connection is the place to begin at, and a SYNC_MASTER takes it for what the reader has: sends
that wait for less end well. Each send that waits is younger than `slaveTimeout`, so a place that was the log's end long
before is safe.

Source: `HAConnection.ReadSocketService`, `HAService.notifyTransferSome`.
"""

from __future__ import annotations

from collections import deque

from rmqfast.mirror.source import LogBounds

__all__ = ["SettledEnds"]

#: Seconds, three times and more what a send waits for.
AGE = 10.0
KEPT = 32


class SettledEnds:
    """Ends of the log, by when they were seen.

    Example:
        >>> ends = SettledEnds()
        >>> ends.note(LogBounds(begin=0, end=500, asked=100.0))
        >>> ends.settled_by(500), ends.settled_by(501), ends.settled_by(0)
        (110.0, None, 0.0)
    """

    def __init__(self, age: float = AGE) -> None:
        self._age = age
        self._ends: deque[LogBounds] = deque(maxlen=KEPT)

    def note(self, bounds: LogBounds) -> None:
        """Notes where the log ended."""
        # a longer log tells nothing new of the places before its end
        if not self._ends or bounds.end != self._ends[-1].end:
            self._ends.append(bounds)

    def settled_by(self, offset: int) -> float | None:
        """When `offset` is safe to begin at, by `time.monotonic`; None where the log was not seen to reach so far."""
        if any(offset <= bounds.begin for bounds in self._ends):
            return 0.0
        return next((bounds.asked + self._age for bounds in self._ends if bounds.end >= offset), None)
