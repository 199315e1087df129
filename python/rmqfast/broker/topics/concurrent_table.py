"""A table of the broker, which is written in the order in which RocketMQ has it."""

from __future__ import annotations

from typing import TypeVar

from rmqfast.remoting.hash_map import HashMap, hash_order

_K = TypeVar("_K")
_V = TypeVar("_V")
_BUCKETS = 2048


class ConcurrentTable(HashMap[_K, _V]):
    """A mapping in the order of a `ConcurrentHashMap` that was made for 1,024 entries.

    Example:
        >>> [name for name, _ in ConcurrentTable({"BenchmarkTest": 1, "TBW102": 2, "broker-a": 3}).in_order()]
        ['broker-a', 'TBW102', 'BenchmarkTest']

    Source: `TopicConfigManager`, `SubscriptionGroupManager`.
    """

    def in_order(self) -> list[tuple[_K, _V]]:
        """Its items in that order."""
        return [(key, self[key]) for key in hash_order(self, capacity=_BUCKETS, concurrent=True)]
