"""Computes hash codes as Java does, and the order of Java's hash map, in which RocketMQ writes properties.

Source: `java.util.HashMap`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")

#: Longest string whose hash is cached, so that clients cannot fill the memory with long strings.
_KEPT_LENGTH = 255


def hash_order(keys: Iterable[str]) -> list[str]:
    """Returns keys in the order of a `java.util.HashMap` to which they were added one by one.

    Keys in the same bucket keep the given order.
    """
    return sort_by_hash(list(keys), java_hash)


def sort_by_hash(keys: list[T], hash_of: Callable[[T], int]) -> list[T]:
    """Returns keys in the order of a `java.util.HashMap`, by a function that computes their `hashCode`."""
    capacity = 16
    # The table doubles when it is filled beyond its load factor of 0.75.
    while len(keys) > capacity * 3 // 4:
        capacity *= 2
    return sorted(keys, key=lambda key: _bucket(hash_of(key), capacity))


def java_hash(key: str | int) -> int:
    """Returns the `hashCode` of a string or a `Long`, as an unsigned number of 32 bits."""
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
            value = value * 31 + unit  # one final mask gives the same hash, and short numbers stay fast
        return value & 0xFFFFFFFF
    # Java hashes UTF-16 code units.
    units = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(units), 2):
        value = (value * 31 + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return value


def _bucket(value: int, capacity: int) -> int:
    # `HashMap.hash` folds in the upper half, since only the lower bits choose the bucket.
    return (value ^ (value >> 16)) & (capacity - 1)
