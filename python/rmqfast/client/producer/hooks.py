"""Hooks: what an application is told of each attempt to send, and of how transactions end.

Source: `SendMessageHook`, `SendMessageContext`, `EndTransactionHook`, `EndTransactionContext`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from rmqfast.client.producer.send import SendResult
from rmqfast.client.producer.transactions import LocalTransactionState
from rmqfast.client.trace import MessageType
from rmqfast.message import Message, MessageQueue

_log = logging.getLogger(__name__)


class CommunicationMode(StrEnum):
    """Who waits for the answer to a send."""

    SYNC = "SYNC"
    ASYNC = "ASYNC"
    ONEWAY = "ONEWAY"


@dataclass(slots=True)
class SendContext:
    """One attempt to send.

    Attributes:
        producer_group: The producer's group.
        messages: What is sent; a hook may put others in their place before, as many, for instance with more properties.
            None of rows of an Arrow table.
        queue: Where it goes, as the broker knows it.
        broker_address: The broker.
        mode: Who waits for the answer.
        message_type: What kind of message it is.
        unique_id: The id of the message; of a batch all of them, separated by commas.
        body_length: Bytes of the body as it is sent.
        result: How it ended; `None` before, for a one-way send and where it failed.
        error: Why it failed.
        notes: What a hook wants to remember until after.

    Source: `SendMessageContext`.
    """

    producer_group: str
    messages: Sequence[Message]
    queue: MessageQueue
    broker_address: str
    mode: CommunicationMode
    message_type: MessageType
    unique_id: str
    body_length: int
    result: SendResult | None = None
    error: Exception | None = None
    notes: dict[str, Any] = field(default_factory=dict)


class SendHook(Protocol):
    """Is told of each attempt to send, on the thread that makes it; what it raises is logged.

    Source: `SendMessageHook`.
    """

    @property
    def name(self) -> str:
        """What it is called in logs."""

    def before(self, context: SendContext) -> None:
        """A message is about to be sent."""

    def after(self, context: SendContext) -> None:
        """It was sent, or not."""


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


class _Named(Protocol):
    @property
    def name(self) -> str: ...


H = TypeVar("H", bound=_Named)


class Hooks(Generic[H]):
    """All hooks of one kind; what one raises is logged, and keeps no message from being sent.

    Args:
        kind: What they are, for the log.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._hooks: tuple[H, ...] = ()
        #: Whether there are some; an attribute, as each send asks.
        self.are_there = False

    def add(self, hook: H) -> None:
        """Adds one; it is told last."""
        self._hooks, self.are_there = (*self._hooks, hook), True
        _log.info("register %s Hook, %s", self._kind, hook.name)

    def tell(self, call: Callable[[H], None]) -> None:
        """Tells all of them, in their order."""
        for hook in self._hooks:
            try:
                call(hook)
            except Exception:  # noqa: BLE001 - as above
                _log.warning("the %s hook %s failed", self._kind, hook.name, exc_info=True)
