"""Finds positions at which a follower can start without being taken for a slave that has confirmed new messages.

The first report of a connection is its start offset, which a SYNC_MASTER takes for a slave's position: it completes
sends that wait for a lower position. A waiting send is younger than `slaveTimeout`, so the log's end of long ago is a
safe position.

Source: `HAConnection.ReadSocketService`, `HAService.notifyTransferSome`.
"""

from __future__ import annotations

import math
from collections import deque

from rmqfast.mirror.source import LogBounds

#: Seconds until an end is safe: over three times the usual wait of a send.
AGE = 10.0
KEPT = 32


class SettledEnds:
    """The ends of the log that were observed, with the times of observation.

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
        # After a restart, or with a shorter log, the broker may have other messages at these positions.
        if self._ends and (bounds.boot != self._ends[-1].boot or bounds.end < self._ends[-1].end):
            self._ends.clear()
        # An unchanged end is already noted.
        if not self._ends or bounds.end != self._ends[-1].end:
            self._ends.append(bounds)

    def safe_from(self, offset: int, slave_timeout: float = 3.0) -> float:
        """Returns the earliest time, of `time.monotonic`, at which it is safe to start at `offset`.

        `slave_timeout` is the longest wait of a send, in seconds.
        """
        if any(offset <= bounds.begin for bounds in self._ends):
            return 0.0
        age = max(AGE, 3 * slave_timeout)
        return next((bounds.asked + age for bounds in self._ends if bounds.end >= offset), math.inf)
