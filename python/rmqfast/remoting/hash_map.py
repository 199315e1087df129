"""Sorts keys as Java's hash tables do, which is the order in which RocketMQ writes them.

Source: `java.util.HashMap`, `java.util.concurrent.ConcurrentHashMap`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from rmqfast.message import MessageQueue

_K = TypeVar("_K")
_V = TypeVar("_V")
#: Characters of a text whose hash is kept: longer ones, of which clients may send many, would fill the memory.
_KEPT_LENGTH = 255


class HashMap(dict[_K, _V]):
    """A mapping that is written in the order of a `java.util.HashMap`, or of a `ConcurrentHashMap`: see `hash_order`.

    Example:
        >>> from rmqfast.remoting.fastjson import encode
        >>> encode(HashMap({"%RETRY%g": 1, "wire": 2})), encode({"wire": 2, "%RETRY%g": 1})
        (b'{"wire":2,"%RETRY%g":1}', b'{"%RETRY%g":1,"wire":2}')
    """

    def __init__(
        self,
        items: Mapping[_K, _V] | Iterable[tuple[_K, _V]] = (),
        *,
        capacity: int = 16,
        concurrent: bool = False,
    ) -> None:
        super().__init__(items)
        self._capacity, self._concurrent = capacity, concurrent

    def in_order(self) -> list[tuple[_K, _V]]:
        """Its items in that order."""
        return [(key, self[key]) for key in hash_order(self, capacity=self._capacity, concurrent=self._concurrent)]


def hash_order(keys: Iterable[_K], *, capacity: int = 16, concurrent: bool = False) -> list[_K]:
    """Keys in the order of a hash table that has got them one by one.

    Args:
        keys: Texts, whole numbers of 64 bits, queues; those of one bucket stay in the order given.
        capacity: Buckets at first: a power of two; of a `ConcurrentHashMap(n)` the one above 1.5 n.
        concurrent: Whether it is a `ConcurrentHashMap`, which grows one entry earlier.
    """
    listed = list(keys)
    # the table doubles behind its load factor of 0.75; a ConcurrentHashMap already as it reaches it
    while len(listed) + concurrent > capacity * 3 // 4:
        capacity *= 2
    return sorted(listed, key=lambda key: _bucket(key, capacity))


def java_hash(key: Any) -> int:
    """`hashCode` of a text, of a `Long` or of a `MessageQueue`, as 32 bits without sign.

    Example:
        >>> java_hash("TagA"), java_hash(7), java_hash(-1)
        (2598919, 7, 0)
    """
    if isinstance(key, MessageQueue):
        inner = (31 + java_hash(key.broker_name)) * 31 + key.queue_id
        return (inner * 31 + java_hash(key.topic)) & 0xFFFFFFFF
    if isinstance(key, int):
        return (key ^ (key >> 32)) & 0xFFFFFFFF
    text = str(key)
    return _text_hash(text) if len(text) > _KEPT_LENGTH else _kept_hash(text)


@lru_cache(maxsize=1 << 16)
def _kept_hash(text: str) -> int:
    return _text_hash(text)


def _text_hash(text: str) -> int:
    value = 0
    if text.isascii() and len(text) <= _KEPT_LENGTH:
        for unit in text.encode():
            value = value * 31 + unit  # the end is the same, and a short number is fast
        return value & 0xFFFFFFFF
    units = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(units), 2):
        value = (value * 31 + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return value


def _bucket(key: Any, capacity: int) -> int:
    value = java_hash(key)
    # `HashMap.hash` folds the upper half in, since only the lower bits choose the bucket
    return (value ^ (value >> 16)) & (capacity - 1)
