"""What is told of how transactions end.

Source: `EndTransactionHook`, `EndTransactionContext`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Protocol

from rmqfast.client.producer.transaction_listener import LocalTransactionState

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EndTransactionContext:
    """How a transaction ended.

    Attributes:
        producer_group: The group, with its namespace.
        message: What was sent, a `Message`; where a broker asked, as the broker has it, a `MessageView`.
        broker_address: The broker that is told.
        message_id: The id that the producer gave.
        transaction_id: The same; `None` where the transaction was not carried out.
        state: How it ended.
        is_from_check: Whether a broker asked.

    Source: `EndTransactionContext`.
    """

    producer_group: str
    message: Any
    broker_address: str
    message_id: str
    transaction_id: str | None
    state: LocalTransactionState
    is_from_check: bool


class EndTransactionHook(Protocol):
    """Is told of each transaction before the broker is; what it raises is logged.

    Source: `EndTransactionHook`.
    """

    @property
    def name(self) -> str:
        """What it is called in logs."""

    def end_transaction(self, context: EndTransactionContext) -> None:
        """A transaction has ended, or nobody knows how."""


class EndTransactionHooks:
    """All such hooks of a producer."""

    def __init__(self) -> None:
        self._hooks: tuple[EndTransactionHook, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def add(self, hook: EndTransactionHook) -> None:
        """Adds one; it is told last."""
        self._hooks = (*self._hooks, hook)
        _log.info("register endTransaction Hook, %s", hook.name)

    def end_transaction(self, context: EndTransactionContext) -> None:
        """Tells all of them."""
        for hook in self._hooks:
            try:
                hook.end_transaction(context)
            except Exception:  # noqa: BLE001 - a hook does not keep a broker from being told
                _log.warning("the hook %s failed at the end of a transaction", hook.name, exc_info=True)
