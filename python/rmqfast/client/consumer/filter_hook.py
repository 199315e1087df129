"""What leaves messages out of a pull's answer.

Source: `FilterMessageHook`, `FilterMessageContext`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Protocol

from rmqfast._native import MessageView
from rmqfast.message import MessageQueue

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class FilterContext:
    """What a pull brought.

    Attributes:
        consumer_group: The group, with its namespace.
        queue: Where it comes from, its topic with its namespace.
        messages: Those that the subscription wants; what a hook takes out of the list is never seen.
        is_unit_mode: Whether the client is of a unit.

    Source: `FilterMessageContext`, of which Java fills the last two.
    """

    consumer_group: str
    queue: MessageQueue
    messages: list[MessageView]
    is_unit_mode: bool = False


class FilterHook(Protocol):
    """May take messages out of a pull's answer; what it raises is logged.

    Source: `FilterMessageHook`.
    """

    @property
    def name(self) -> str:
        """What it is called in logs."""

    def filter(self, context: FilterContext) -> None:
        """Takes out of `context.messages` what is not wanted: it counts as consumed."""


class FilterHooks:
    """All such hooks of a consumer."""

    def __init__(self) -> None:
        self._hooks: tuple[FilterHook, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def add(self, hook: FilterHook) -> None:
        """Adds one; it is asked last."""
        self._hooks = (*self._hooks, hook)
        _log.info("register FilterMessageHook Hook, %s", hook.name)

    def filter(self, context: FilterContext) -> list[MessageView]:
        """What all of them leave in.

        Source: `PullAPIWrapper.executeHook`.
        """
        for hook in self._hooks:
            try:
                hook.filter(context)
            except Exception:  # noqa: BLE001 - a hook does not keep messages from being consumed
                _log.exception("execute hook error. hookName=%s", hook.name)
        return context.messages
