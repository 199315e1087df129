"""Parses and writes the properties of a message as the text in a record or a header.

Source: RocketMQ's `MessageDecoder`, `HashMap`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from rmqfast.remoting.hash_map import hash_order

__all__ = ["in_map_order", "parse_properties", "write_properties"]

_NAME_END = "\x01"
_PROPERTY_END = "\x02"


def parse_properties(text: str) -> dict[str, str]:
    r"""Parses a property string; skips empty names and values, and keeps the last of two with one name.

    Example:
        >>> parse_properties("TAGS\x01a\x02b\x01\x02KEYS\x01k1 k2\x02TAGS\x01c\x02")
        {'TAGS': 'c', 'KEYS': 'k1 k2'}
    """
    properties = {}
    for part in text.split(_PROPERTY_END):
        name, _, value = part.partition(_NAME_END)
        if name and value:
            properties[name] = value
    return properties


def write_properties(properties: Mapping[str, str]) -> str:
    r"""Returns the property string, in the order of Java's map.

    Example:
        >>> write_properties({"TAGS": "a", "KEYS": "k"})
        'KEYS\x01k\x02TAGS\x01a'
    """
    return _PROPERTY_END.join(f"{name}{_NAME_END}{value}" for name, value in in_map_order(properties).items())


def in_map_order(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns the properties in the order of a `java.util.HashMap` that got them one by one.

    Example:
        >>> list(in_map_order(dict.fromkeys(["zeta", "TAGS", "KEYS", "alpha", "UNIQ_KEY"], "")))
        ['zeta', 'KEYS', 'alpha', 'UNIQ_KEY', 'TAGS']
    """
    # RocketMQ writes a HashMap: only in its order are records byte for byte those of a real broker
    return {name: properties[name] for name in _names_in_order(tuple(properties))}


@lru_cache(maxsize=256)
def _names_in_order(names: tuple[str, ...]) -> tuple[str, ...]:
    """Cached: messages of one kind have the same names."""
    return tuple(hash_order(names))
