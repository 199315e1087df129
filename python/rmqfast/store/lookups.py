"""Turns the rows of a look-up into messages, and warns of damage on the way."""

from __future__ import annotations

from typing import Any

from rmqfast.arguments import Number, integer
from rmqfast.message import MessageExt
from rmqfast.store.damage_warning import CallerLine, described

__all__ = ["check_count", "messages_of"]


def messages_of(lookup: tuple[list[dict[str, Any]], list[tuple[int, int, str, str]]]) -> list[MessageExt]:
    """The messages of a look-up."""
    rows, damage = lookup
    if damage:
        CallerLine().warn(f"{described(damage)}; MessageStore.verify lists all")
    return [MessageExt(**row) for row in rows]


def check_count(max_messages: Number) -> int:
    """The number of messages that a look-up shall give at most.

    Raises:
        ArgumentError: It is less than 1, or more than 2^20.
    """
    return integer("max_messages", max_messages, 1, 1 << 20)
