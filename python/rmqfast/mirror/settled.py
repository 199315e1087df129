"""Finds start offsets at which a follower completes no send that waits for a slave.

The first report of a connection is its start offset, and a SYNC_MASTER takes it as the position of a slave: sends that
wait for less succeed. Each waiting send is younger than `slaveTimeout`, so a position that was the log's end long
before is safe.

Source: `HAConnection.ReadSocketService`, `HAService.notifyTransferSome`.
"""

from __future__ import annotations

import math
from collections import deque

from rmqfast.mirror.source import LogBounds

__all__ = ["SettledEnds"]

#: Seconds, three times and more what a send waits for.
AGE = 10.0
KEPT = 32


class SettledEnds:
    """Ends of the log with the times at which they were seen.

    Example:
        >>> ends = SettledEnds()
        >>> ends.note(LogBounds(begin=0, end=500, boot="1", asked=100.0))
        >>> ends.safe_from(500), ends.safe_from(501), ends.safe_from(0), ends.safe_from(500, slave_timeout=5)
        (110.0, inf, 0.0, 115.0)
        >>> ends.note(LogBounds(begin=0, end=900, boot="2", asked=200.0))
        >>> ends.safe_from(500)
        210.0
    """

    def __init__(self) -> None:
        self._ends: deque[LogBounds] = deque(maxlen=KEPT)

    def note(self, bounds: LogBounds) -> None:
        # a broker that was started again, or whose log is shorter, may have other messages at these places
        if self._ends and (bounds.boot != self._ends[-1].boot or bounds.end < self._ends[-1].end):
            self._ends.clear()
        # one that ends where it did tells nothing new
        if not self._ends or bounds.end != self._ends[-1].end:
            self._ends.append(bounds)

    def safe_from(self, offset: int, slave_timeout: float = 3.0) -> float:
        """The time, by `time.monotonic`, from which on `offset` is a safe start.

        Args:
            offset: Of the log.
            slave_timeout: How long a send waits at most, in seconds.
        """
        if any(offset <= bounds.begin for bounds in self._ends):
            return 0.0
        age = max(AGE, 3 * slave_timeout)
        return next((bounds.asked + age for bounds in self._ends if bounds.end >= offset), math.inf)
