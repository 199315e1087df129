"""Adds up the counters of the data plane for the store as a whole.

Source: RocketMQ's `StoreStatsService`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rmqfast.broker.statistics.broker_stats import Counter

#: Where the ranges of times end in which puts are counted, in milliseconds; the last has no end.
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
    """Sums of the counters since the start.

    Attributes:
        put_size: Bytes of their records.
        get_found: Pulls that found messages.
        get_miss: Pulls that found none.
        transferred: Messages that were got.
        put_time_ranges: Puts by the range of time they took: see `PUT_TIME_RANGES`.
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
        """Sums up counters.

        Those of topics and groups count, and `STORE_PUT_NUMS` and `STORE_PUT_SIZE` of messages that the broker itself
        stored, which are no topic's statistics; beside them there may be `STORE_PUT_FAILED`, `STORE_GET_MISS`,
        `STORE_PUT_TIME_MAX` and `STORE_GET_TIME_MAX`, whose amounts count whatever their key, and `STORE_PUT_TIME`,
        whose key is a range.

        Example:
            >>> StoreTotals.from_counters([("TOPIC_PUT_NUMS", "a", 2, 2), ("GROUP_GET_NUMS", "a@g", 1, 2)])[:6]
            (2, 0, 0, 1, 0, 2)
        """
        times: dict[str, int] = {}
        values: dict[str, int] = {}
        ranges: dict[str, int] = {}
        own = 0  # what the broker itself took out of the delay levels
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
    """Returns the milliseconds within which this part of the puts was done.

    Example:
        >>> percentile({"<=0ms": 50, "0~10ms": 50}, 0.99), percentile({}, 0.99)
        (9.8, 0.0)
    """
    rank = int(sum(put_times.values()) * part)
    count_below, low = 0, 0
    for name, high in PUT_TIME_RANGES.items():
        count = put_times.get(name, 0)
        if count and count_below + count >= rank:
            return low + (high - low) * (rank - count_below) / count
        count_below, low = count_below + count, high
    return 0.0
