"""Computes statistics of the store: amounts, rates and durations of puts and gets.

Source: RocketMQ's `StoreStatsService`, `BrokerStats`, `AdminBrokerProcessor`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from rmqfast.broker.statistics.broker_stats import Counter
from rmqfast.remoting.fastjson import java_double
from rmqfast.threads import new_lock

#: Upper ends of the time ranges in which puts are counted, in milliseconds; the last range is open.
PUT_TIME_RANGES = {
    "<=0ms": 0,
    "0~10ms": 10,
    "10~50ms": 50,
    "50~100ms": 100,
    "100~200ms": 200,
    "200~500ms": 500,
    "500ms~1s": 1000,
    "1~2s": 2000,
    "2~3s": 3000,
    "3~4s": 4000,
    "4~5s": 5000,
    "5~10s": 10_000,
    "10s~": 10_000,
}


_DELIVERED = "SCHEDULE_TOPIC_XXXX@SCHEDULE_CONSUMER"


class StoreTotals(NamedTuple):
    """Sums of the store's counters since the start.

    Attributes:
        put_size: Bytes of the stored records.
        get_found: Pulls that found messages.
        get_miss: Pulls that found no message.
        transferred: Messages sent to consumers.
        put_time_ranges: Number of puts by duration; see `PUT_TIME_RANGES`.
    """

    put_times: int = 0
    put_size: int = 0
    put_failed: int = 0
    get_found: int = 0
    get_miss: int = 0
    transferred: int = 0
    put_time_max: int = 0
    get_time_max: int = 0
    put_time_ranges: Mapping[str, int] = {}

    @classmethod
    def from_counters(cls, counters: Iterable[Counter]) -> StoreTotals:
        """Returns the sums of the data plane's counters.

        Counters of topics and groups count, and `STORE_PUT_NUMS` and `STORE_PUT_SIZE` of the broker's own messages,
        which belong to no topic's statistics. The amounts of `STORE_PUT_FAILED`, `STORE_GET_MISS`,
        `STORE_PUT_TIME_MAX` and `STORE_GET_TIME_MAX` count regardless of their key. The key of `STORE_PUT_TIME` is a
        range.
        """
        times: dict[str, int] = {}
        values: dict[str, int] = {}
        ranges: dict[str, int] = {}
        own = 0  # deliveries from delay levels, which are not pulls
        for name, key, count, amount in counters:
            own += count if (name, key) == ("GROUP_GET_NUMS", _DELIVERED) else 0
            times[name] = times.get(name, 0) + count
            values[name] = values.get(name, 0) + amount
            if name == "STORE_PUT_TIME":
                ranges[key] = ranges.get(key, 0) + count
        return cls(
            put_times=values.get("TOPIC_PUT_NUMS", 0) + values.get("STORE_PUT_NUMS", 0),
            put_size=values.get("TOPIC_PUT_SIZE", 0) + values.get("STORE_PUT_SIZE", 0),
            put_failed=values.get("STORE_PUT_FAILED", 0),
            get_found=times.get("GROUP_GET_NUMS", 0) - own,
            get_miss=values.get("STORE_GET_MISS", 0),
            transferred=values.get("GROUP_GET_NUMS", 0) - own,
            put_time_max=values.get("STORE_PUT_TIME_MAX", 0),
            get_time_max=values.get("STORE_GET_TIME_MAX", 0),
            put_time_ranges=ranges,
        )


def percentile(put_times: Mapping[str, int], part: float) -> float:
    """Returns an estimate of the milliseconds within which a given part of the puts ended. 0 without puts.

    Example:
        >>> percentile({"<=0ms": 50, "0~10ms": 50}, 0.99), percentile({}, 0.99)
        (9.8, 0.0)
    """
    rank = int(sum(put_times.values()) * part)
    count_below, low = 0, 0
    for name, high in PUT_TIME_RANGES.items():
        count = put_times.get(name, 0)
        if count and count_below + count >= rank:
            # Assumes that puts are spread evenly over their range.
            return low + (high - low) * (rank - count_below) / count
        count_below, low = count_below + count, high
    return 0.0


SECOND, MINUTE = 1000, 60_000
_WINDOWS = (10, 60, 600)
#: One sample per second for ten minutes, with both ends.
_SAMPLE_COUNT = 601


class DailyCounters(NamedTuple):
    """Numbers of messages put and got, at the start of yesterday and of today."""

    put_yesterday: int = 0
    put_today: int = 0
    got_yesterday: int = 0
    got_today: int = 0

    def next(self, totals: StoreTotals) -> DailyCounters:
        return DailyCounters(self.put_today, totals.put_times, self.got_today, totals.transferred)


class StoreStats:
    """One sample of the totals per second. Thread-safe."""

    def __init__(self, counters: Callable[[], Iterable[Counter]], *, now: int) -> None:
        self._counters = counters
        self._lock = new_lock()
        self._boot = now
        self._samples: deque[tuple[int, StoreTotals]] = deque(maxlen=_SAMPLE_COUNT)
        self._day = _day(now)
        self._daily_counters = DailyCounters()
        self._minute_at = now
        self._put_times_before: Mapping[str, int] = {}
        self._put_times: Mapping[str, int] = {}

    def run_once(self, now: int) -> None:
        """Records the totals: as a sample every second, and for the daily counts at the start of a day."""
        if self._samples and 0 <= now - self._samples[-1][0] < SECOND:
            return
        totals = StoreTotals.from_counters(self._counters())
        with self._lock:
            self._samples.append((now, totals))
            if _day(now) != self._day:
                self._day = _day(now)
                self._daily_counters = self._daily_counters.next(totals)
            if now - self._minute_at >= MINUTE:
                self._roll(totals, now)

    def runtime_info(self, now: int) -> dict[str, str]:
        """Returns the statistics under RocketMQ's names."""
        totals = StoreTotals.from_counters(self._counters())
        with self._lock:
            return self._totals_info(totals, now) | self._tps_info() | self._daily_info(totals)

    def _totals_info(self, totals: StoreTotals, now: int) -> dict[str, str]:
        times = totals.put_times or 1  # 1 instead of 0, as in RocketMQ, even in the reported number
        return {
            "bootTimestamp": str(self._boot),
            "runtime": format_runtime(now - self._boot),
            "putMessageEntireTimeMax": str(totals.put_time_max),
            "putMessageTimesTotal": str(times),
            "putMessageFailedTimes": str(totals.put_failed),
            "putMessageSizeTotal": str(totals.put_size),
            "putMessageDistributeTime": "".join(
                f"[{name}]:{self._put_times.get(name, 0)} " for name in PUT_TIME_RANGES
            ),
            "putMessageAverageSize": java_double(totals.put_size / times),
            "getMessageEntireTimeMax": str(totals.get_time_max),
            "putLatency99": f"{percentile(self._put_times, 0.99):.2f}",
            "putLatency999": f"{percentile(self._put_times, 0.999):.2f}",
        }

    def _tps_info(self) -> dict[str, str]:
        get_found = [self._tps(lambda totals: totals.get_found, window) for window in _WINDOWS]
        get_miss = [self._tps(lambda totals: totals.get_miss, window) for window in _WINDOWS]
        put_tps = [self._tps(lambda totals: totals.put_times, window) for window in _WINDOWS]
        transferred = [self._tps(lambda totals: totals.transferred, window) for window in _WINDOWS]
        total = [(a or 0.0) + (b or 0.0) for a, b in zip(get_found, get_miss, strict=True)]
        rows: dict[str, Sequence[float | None]] = {
            "putTps": put_tps,
            "getFoundTps": get_found,
            "getMissTps": get_miss,
            "getTransferedTps": transferred,
            "getTotalTps": total,
        }
        return {name: " ".join("" if tps is None else java_double(tps) for tps in row) for name, row in rows.items()}

    def _daily_info(self, totals: StoreTotals) -> dict[str, str]:
        daily_counters = self._daily_counters
        return {
            "msgPutTotalYesterdayMorning": str(daily_counters.put_yesterday),
            "msgPutTotalTodayMorning": str(daily_counters.put_today),
            "msgPutTotalTodayNow": str(totals.put_times),
            "msgGetTotalYesterdayMorning": str(daily_counters.got_yesterday),
            "msgGetTotalTodayMorning": str(daily_counters.got_today),
            "msgGetTotalTodayNow": str(totals.transferred),
        }

    def _tps(self, figure: Callable[[StoreTotals], int], seconds: int) -> float | None:
        if len(self._samples) <= seconds:
            return None
        (last_at, last), (first_at, first) = self._samples[-1], self._samples[-1 - seconds]
        return (figure(last) - figure(first)) * 1000.0 / max(1, last_at - first_at)

    def _roll(self, totals: StoreTotals, now: int) -> None:
        self._minute_at = now
        before, ranges = self._put_times_before, totals.put_time_ranges
        # Counters only grow, so the last minute is a difference.
        self._put_times = {name: ranges.get(name, 0) - before.get(name, 0) for name in PUT_TIME_RANGES}
        self._put_times_before = ranges


def format_runtime(spent: int) -> str:
    """Formats milliseconds as RocketMQ formats its uptime: "[ 1 days, 1 hours, 1 minutes, 1 seconds ]"."""
    minutes, seconds = divmod(max(0, spent) // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"[ {days:,} days, {hours} hours, {minutes} minutes, {seconds} seconds ]"


def _day(now: int) -> int:
    return datetime.fromtimestamp(now / 1000).toordinal()  # noqa: DTZ006  # RocketMQ's days are in local time
