"""Converts RocketMQ's JSON fields to Python attributes and back. Unknown fields are kept.

Source: RocketMQ's `RemotingSerializable`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

_NAMES: dict[type, dict[str, str]] = {}


@dataclass(frozen=True, kw_only=True)
class ConfigValue:
    """Base class of configuration values. Names are in snake case: `readQueueNums` becomes `read_queue_nums`.

    Attributes:
        other: Unknown fields, such as those of 5.x, which are written back unchanged.
    """

    other: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> Self:
        names = python_names(cls)
        values = {names[member]: value for member, value in members.items() if member in names and value is not None}
        # the fast path: a broker may read ten thousand entries at its start
        if len(values) == len(members):
            return cls(**values)
        other = {member: value for member, value in members.items() if member not in names and value is not None}
        return cls(**values, other=other)

    def to_json(self) -> dict[str, Any]:
        values = {member: getattr(self, name) for member, name in python_names(type(self)).items()}
        return dict(sorted((dict(self.other) | values).items())) if self.other else values


def with_names(members: Mapping[str, Any], **names: str) -> Mapping[str, Any]:
    """Returns the fields of an entry, with its names added if the fields lack them."""
    untold = {field: name for field, name in names.items() if members.get(field) is None}
    return {**members, **untold} if untold else members


def python_names(cls: type[ConfigValue]) -> Mapping[str, str]:
    # cached, because a broker reads many entries of the same class
    if cls not in _NAMES:
        _NAMES[cls] = dict(sorted((java_name(f.name), f.name) for f in fields(cls) if f.name != "other"))
    return _NAMES[cls]


def java_name(name: str) -> str:
    first, *words = name.split("_")
    return first + "".join(word.capitalize() for word in words)
