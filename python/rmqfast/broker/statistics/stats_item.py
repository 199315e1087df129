"""Samples the counters of one key, and computes its minute, hour and day.

Source: RocketMQ's `StatsItem`, `StatsSnapshot`, `CallSnapshot`, `BrokerStatsItem`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

SECOND = 1000
MINUTE_PERIOD, HOUR_PERIOD, DAY_PERIOD = 10 * SECOND, 600 * SECOND, 3600 * SECOND


class CallSnapshot(NamedTuple):
    timestamp: int
    times: int
    value: int


class StatsSnapshot(NamedTuple):
    """The difference between the first and the last sample.

    Attributes:
        sum: What it added up to.
        tps: That for each second.
        times: How often something was counted.
        avgpt: The sum for each time.
    """

    sum: int = 0
    tps: float = 0.0
    times: int = 0
    avgpt: float = 0.0

    def to_json(self) -> dict[str, int | float]:
        return {"sum": self.sum, "tps": self.tps, "avgpt": self.avgpt}


class StatsItem:
    """Three rows of samples: every ten seconds of a minute, ten minutes of an hour, hour of a day.

    A row begins with a sample of nothing, one period before its first.

    Example:
        >>> item = StatsItem()
        >>> item.count(times=3, value=30)
        >>> item.sample(MINUTE_PERIOD, now=1_000_000)
        >>> item.minute
        StatsSnapshot(sum=30, tps=3.0, times=3, avgpt=10.0)
    """

    _ROW_LENGTHS: ClassVar = {MINUTE_PERIOD: 7, HOUR_PERIOD: 7, DAY_PERIOD: 25}
    _STEPS: ClassVar = {MINUTE_PERIOD: 10 * SECOND, HOUR_PERIOD: 600 * SECOND, DAY_PERIOD: 3600 * SECOND}

    def __init__(self) -> None:
        self._times = 0
        self._value = 0
        self._rows: dict[int, deque[CallSnapshot]] = {
            period: deque(maxlen=length) for period, length in self._ROW_LENGTHS.items()
        }

    def count(self, *, times: int, value: int) -> None:
        """Sets the totals, which only grow."""
        self._times = times
        self._value = value

    def sample(self, period: int, *, now: int) -> None:
        row = self._rows[period]
        if not row:
            row.append(CallSnapshot(now - self._STEPS[period], 0, 0))
        row.append(CallSnapshot(now, self._times, self._value))

    @property
    def minute(self) -> StatsSnapshot:
        return between(self._rows[MINUTE_PERIOD])

    @property
    def hour(self) -> StatsSnapshot:
        return between(self._rows[HOUR_PERIOD])

    @property
    def day(self) -> StatsSnapshot:
        return between(self._rows[DAY_PERIOD])


def between(samples: Sequence[CallSnapshot]) -> StatsSnapshot:
    if not samples:
        return StatsSnapshot()
    first, last = samples[0], samples[-1]
    total, times, spent = last.value - first.value, last.times - first.times, last.timestamp - first.timestamp
    tps = total * 1000.0 / spent if spent > 0 else 0.0
    return StatsSnapshot(total, tps, times, total / times if times > 0 else 0.0)
