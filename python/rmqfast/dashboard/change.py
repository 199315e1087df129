"""A change of the cluster: what it asks for, what it would do, and what it did."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rmqfast.admin import Admin
from rmqfast.dashboard.look import Look
from rmqfast.dashboard.page import Field, Table

#: Names that a form suggests.
_SUGGESTED = 500
#: What a visitor filled in, by the name of the field.
Values = Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """The effect of a change, before it is made or behind it.

    Attributes:
        text: It in one sentence.
        facts: Single values.
        tables: It in detail, as queue by queue.
    """

    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    tables: Sequence[Table] = ()


class Change(ABC):
    """A kind of change."""

    @abstractmethod
    def fields(self, look: Look, values: Values) -> Sequence[Field]:
        """Returns what it asks for, with what is filled in already."""

    def name_to_type(self, values: Values) -> str:  # noqa: ARG002
        """Returns the name that must be typed before, as that of a topic that would be deleted; empty without one."""
        return ""

    @abstractmethod
    def preview(self, admin: Admin, values: Values) -> Effect:
        """Returns what it would do, and changes nothing. Raises `RmqError` if it cannot be done."""

    @abstractmethod
    def make(self, admin: Admin, values: Values) -> Effect:
        """Does it, and returns what it did. Raises `RmqError` if it failed."""


def names_of(look: Look, kind: str) -> list[str]:
    """Returns names of groups or topics that a form suggests."""
    if kind == "group":
        return [row["group"] for row in look.groups[:_SUGGESTED]]
    return [row["topic"] for row in look.topics if not row["topic"].startswith("%")][:_SUGGESTED]


def text_field(name: str, values: Values, choices: Sequence[str] = (), *, is_required: bool = True) -> Field:
    return Field(name=name, value=values.get(name, ""), choices=choices, is_required=is_required)


def number_field(name: str, values: Values, default: int) -> Field:
    return Field(name=name, value=values.get(name, str(default)), kind="number", is_required=True)
