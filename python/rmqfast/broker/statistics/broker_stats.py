"""Computes statistics of topics and groups from counters that only grow.

Source: RocketMQ's `BrokerStatsManager`, `StatsItemSet`, `StatsItem`, `StatsSnapshot`, `CallSnapshot`,
`BrokerStatsItem`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import ClassVar, NamedTuple

from rmqfast._native import DataPlane
from rmqfast.errors import ResponseError
from rmqfast.remoting import Header, Processor, Request, RequestCode, Response, ResponseCode
from rmqfast.remoting.fastjson import encode
from rmqfast.threads import new_lock

SECOND = 1000
MINUTE_PERIOD, HOUR_PERIOD, DAY_PERIOD = 10 * SECOND, 600 * SECOND, 3600 * SECOND


class CallSnapshot(NamedTuple):
    timestamp: int
    times: int
    value: int


class StatsSnapshot(NamedTuple):
    """The difference between the first and the last sample of a series.

    Attributes:
        sum: Counted amount.
        tps: Amount per second.
        times: Number of counted events.
        avgpt: Amount per event.
    """

    sum: int = 0
    tps: float = 0.0
    times: int = 0
    avgpt: float = 0.0

    def to_json(self) -> dict[str, int | float]:
        return {"sum": self.sum, "tps": self.tps, "avgpt": self.avgpt}


class StatsItem:
    """Three series of samples: the last minute every ten seconds, the last hour every ten minutes, the last day hourly.

    A series begins with a sample of zero, one period before the first real sample.
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
        """Sets the current totals of a statistic, which only grow."""
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


#: Name of a statistic, its key, number of events and amount since the start.
Counter = tuple[str, str, int, int]

#: Statistics of RocketMQ derived from the data plane's counters: messages and bytes, only messages, or calls.
_WITH_SIZE = frozenset({"TOPIC_PUT", "STORE_PUT", "GROUP_GET", "QUEUE_PUT", "QUEUE_GET"})
_WITHOUT_SIZE = frozenset({"BROKER_PUT", "BROKER_GET", "SNDBCK_PUT"})
_CALLS = {"BROKER_PUT_FAILED": "STORE_PUT_FAILED", "BROKER_GET_MISS": "STORE_GET_MISS"}

_BY_TOPIC = ("TOPIC_PUT_NUMS", "TOPIC_PUT_SIZE")
_BY_TOPIC_AND_GROUP = (
    "GROUP_GET_NUMS",
    "GROUP_GET_SIZE",
    "SNDBCK_PUT_NUMS",
    "GROUP_GET_FROM_DISK_NUMS",
    "GROUP_GET_FROM_DISK_SIZE",
)
_BY_QUEUE = ("QUEUE_PUT_NUMS", "QUEUE_PUT_SIZE", "QUEUE_GET_NUMS", "QUEUE_GET_SIZE", "GROUP_GET_LATENCY")
_OF_BROKER = ("BROKER_PUT_NUMS", "BROKER_GET_NUMS", "BROKER_GET_FROM_DISK_NUMS", "BROKER_GET_FROM_DISK_SIZE")
STATS_NAMES = frozenset((*_BY_TOPIC, *_BY_TOPIC_AND_GROUP, *_BY_QUEUE, *_OF_BROKER))


def counters_of(data_plane: DataPlane) -> list[Counter]:
    """Returns the counters of the data plane under RocketMQ's names."""
    put_max, get_max, ranges = data_plane.times()
    counters = [("STORE_PUT_TIME_MAX", "", 1, put_max), ("STORE_GET_TIME_MAX", "", 1, get_max)]
    counters += [("STORE_PUT_TIME", name, count, count) for name, count in ranges]
    for name, key, calls, messages, size in data_plane.counters():
        if name in _WITH_SIZE:
            counters += [(f"{name}_NUMS", key, calls, messages), (f"{name}_SIZE", key, calls, size)]
        elif name in _WITHOUT_SIZE:
            counters.append((f"{name}_NUMS", key, calls, messages))
        elif name in _CALLS:
            counters.append((_CALLS[name], key, calls, calls))
    return counters


class BrokerStats:
    """Statistics by name and key. Thread-safe.

    Keys are a topic, `topic@group`, `topic@queue`, `topic@queue@group`, `queue@topic@group`, or the cluster's name.
    """

    def __init__(self, counters: Callable[[], Iterable[Counter]]) -> None:
        self._counters = counters
        self._lock = new_lock()
        self._items: dict[tuple[str, str], StatsItem] = {}
        self._totals: dict[tuple[str, str], tuple[int, int]] = {}
        self._forgotten: dict[tuple[str, str], tuple[int, int]] = {}
        self._due = dict.fromkeys((MINUTE_PERIOD, HOUR_PERIOD, DAY_PERIOD), 0)

    def run_once(self, now: int) -> None:
        """Takes all samples that are due."""
        # The second condition detects a clock that was set back, so that samples do not wait for the old time.
        periods = [period for period, due_at in self._due.items() if due_at <= now or due_at > now + period]
        if not periods:
            return
        self._refresh()
        with self._lock:
            for period in periods:
                self._due[period] = now + period
                for item in self._items.values():
                    item.sample(period, now=now)

    def item(self, name: str, key: str) -> StatsItem | None:
        """Returns a statistic. None if nothing was counted for it."""
        if (name, key) not in self._items:
            self._refresh()  # it may have been counted since the last sample
        return self._items.get((name, key))

    def tps_group_get_nums(self, group: str, topic: str) -> float:
        """Returns how many messages of a topic a group received per second in the last minute."""
        item = self._items.get(("GROUP_GET_NUMS", f"{topic}@{group}"))
        return 0.0 if item is None else item.minute.tps

    def last_minute(self, names: Collection[str]) -> dict[str, dict[str, StatsSnapshot]]:
        """Returns the statistics of the last minute that have these names, by name and key."""
        table: dict[str, dict[str, StatsSnapshot]] = {name: {} for name in names}
        with self._lock:
            for (name, key), item in self._items.items():
                if name in table:
                    table[name][key] = item.minute
        return table

    def on_topic_deleted(self, topic: str) -> None:
        self._forget(lambda name, key: topic in _topics_of(name, key))

    def on_group_deleted(self, group: str) -> None:
        self._forget(lambda name, key: name not in _OF_BROKER + _BY_TOPIC and key.endswith(f"@{group}"))

    def _forget(self, is_gone: Callable[[str, str], bool]) -> None:
        self._refresh()
        with self._lock:
            for name, key in [place for place in self._items if is_gone(*place)]:
                del self._items[name, key]
                # The data plane's counters only grow, so subtract the amount before the deletion from now on.
                self._forgotten[name, key] = self._totals[name, key]

    def _refresh(self) -> None:
        counters = [counter for counter in self._counters() if counter[0] in STATS_NAMES]
        with self._lock:
            for name, key, times, value in counters:
                self._count((name, key), times, value)

    def _count(self, place: tuple[str, str], times: int, value: int) -> None:
        self._totals[place] = (times, value)
        before = self._forgotten.get(place, (0, 0))
        if before == (times, value):
            return
        if before[0] > times or before[1] > value:  # the data plane has reset its counter, too
            before = (0, 0)
            del self._forgotten[place]
        if place not in self._items:
            self._items[place] = StatsItem()
        self._items[place].count(times=times - before[0], value=value - before[1])


class BrokerStatsProcessor:
    def __init__(self, stats: BrokerStats) -> None:
        self._stats = stats

    def processors(self) -> dict[int, Processor]:
        return {RequestCode.VIEW_BROKER_STATS_DATA: self.view_broker_stats_data}

    def view_broker_stats_data(self, request: Request) -> Response:
        """Answers request 315: a statistic for the last minute, hour and day."""
        header = Header(request.ext_fields)
        name, key = header.text("statsName"), header.text("statsKey")
        item = self._stats.item(name, key)
        if item is None:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"The stats <{name}> <{key}> not exist")
        data = {"statsMinute": item.minute, "statsHour": item.hour, "statsDay": item.day}
        return Response(body=encode({period: snapshot.to_json() for period, snapshot in data.items()}))


def _topics_of(name: str, key: str) -> tuple[str, ...]:
    if name in _OF_BROKER:
        return ()
    # GROUP_GET_LATENCY has keys queue@topic@group; all other keys begin with the topic.
    parts = key.split("@")
    return (parts[1],) if name == "GROUP_GET_LATENCY" and len(parts) > 1 else (parts[0],)
