"""What is told of each send: before, and after.

Source: `SendMessageHook`, `SendMessageContext`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from rmqfast.client.producer.send_result import SendResult
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
        queue: Where it goes.
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


class SendHooks:
    """All hooks of a producer."""

    def __init__(self) -> None:
        self._hooks: tuple[SendHook, ...] = ()
        #: Whether somebody is to be told.
        self.are_there = False

    def __bool__(self) -> bool:
        return self.are_there

    def add(self, hook: SendHook) -> None:
        """Adds one; it is told last."""
        self._hooks, self.are_there = (*self._hooks, hook), True
        _log.info("register sendMessage Hook, %s", hook.name)

    def before(self, context: SendContext) -> None:
        """Tells all of them that a message is about to be sent."""
        for hook in self._hooks:
            try:
                hook.before(context)
            except Exception:  # noqa: BLE001 - a hook does not keep messages from being sent
                _log.warning("the send hook %s failed before a send", hook.name, exc_info=True)

    def after(self, context: SendContext) -> None:
        """Tells all of them that it was sent, or not."""
        for hook in self._hooks:
            try:
                hook.after(context)
            except Exception:  # noqa: BLE001 - as above
                _log.warning("the send hook %s failed after a send", hook.name, exc_info=True)
