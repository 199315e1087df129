"""Computes the statistics of topics and groups out of counters that only grow.

Source: RocketMQ's `BrokerStatsManager`, `StatsItemSet`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rmqfast._native import DataPlane
from rmqfast.broker.statistics.stats_item import DAY_PERIOD, HOUR_PERIOD, MINUTE_PERIOD, StatsItem
from rmqfast.errors import ResponseError
from rmqfast.remoting import Header, Processor, Request, RequestCode, Response, ResponseCode
from rmqfast.remoting.fastjson import encode
from rmqfast.threads import new_lock

#: Name of a statistic, its key, times and amount since the start.
Counter = tuple[str, str, int, int]

#: What RocketMQ counts of what the data plane counts: messages and bytes, messages, or calls.
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
    """Returns the counters of a data plane under RocketMQ's names."""
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
    """Statistics by name and key; thread-safe.

    Keys are a topic, `topic@group`, `topic@queue`, `topic@queue@group`, `queue@topic@group`, or the cluster's name.

    Example:
        >>> stats = BrokerStats(lambda: [("TOPIC_PUT_NUMS", "orders", 20, 20)])
        >>> stats.run_once(now=1_000_000)
        >>> stats.item("TOPIC_PUT_NUMS", "orders").minute.tps
        2.0
    """

    def __init__(self, counters: Callable[[], Iterable[Counter]]) -> None:
        self._counters = counters
        self._lock = new_lock()
        self._items: dict[tuple[str, str], StatsItem] = {}
        self._totals: dict[tuple[str, str], tuple[int, int]] = {}
        self._forgotten: dict[tuple[str, str], tuple[int, int]] = {}
        self._due = dict.fromkeys((MINUTE_PERIOD, HOUR_PERIOD, DAY_PERIOD), 0)

    def run_once(self, now: int) -> None:
        """Takes the samples that are due."""
        # the second condition: the time of day was set back, and samples must not wait for the old time
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
        """Returns a statistic; None where nothing was counted."""
        if (name, key) not in self._items:
            self._refresh()  # it may have been counted since the last sample; otherwise its samples say all
        return self._items.get((name, key))

    def tps_group_get_nums(self, group: str, topic: str) -> float:
        """Returns the messages per second of a topic that a group got in the last minute."""
        item = self._items.get(("GROUP_GET_NUMS", f"{topic}@{group}"))
        return 0.0 if item is None else item.minute.tps

    def on_topic_deleted(self, topic: str) -> None:
        self._forget(lambda name, key: topic in _topics_of(name, key))

    def on_group_deleted(self, group: str) -> None:
        self._forget(lambda name, key: name not in _OF_BROKER + _BY_TOPIC and key.endswith(f"@{group}"))

    def _forget(self, is_gone: Callable[[str, str], bool]) -> None:
        self._refresh()
        with self._lock:
            for name, key in [place for place in self._items if is_gone(*place)]:
                del self._items[name, key]
                # the counters of the data plane only grow: what a deleted topic had is taken off from now on
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
        if before[0] > times or before[1] > value:  # whoever counts has forgotten it, too
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
        """315: a statistic of the last minute, hour and day."""
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
    parts = key.split("@")
    return (parts[1],) if name == "GROUP_GET_LATENCY" and len(parts) > 1 else (parts[0],)
