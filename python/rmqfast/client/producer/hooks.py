"""Hooks of producers. They are called around each attempt to send, and when a transaction ends.

Source: `SendMessageHook`, `SendMessageContext`, `EndTransactionHook`, `EndTransactionContext`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from rmqfast._native import MessageEncoder, Outgoing
from rmqfast.client.producer.message_batch import check_batch_size
from rmqfast.client.producer.send_result import SendResult
from rmqfast.client.producer.transactions import LocalTransactionState
from rmqfast.client.trace import MessageType
from rmqfast.errors import RmqError
from rmqfast.logs import logger_of
from rmqfast.message import Message, MessageQueue
from rmqfast.remoting import RequestCode

_log = logger_of(__name__)

_PREPARED = 4
_DELAYING = frozenset({"TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS", "DELAY", "__STARTDELIVERTIME"})


class CommunicationMode(StrEnum):
    """Whether the caller of a send waits for the answer, gets a callback, or gets no answer."""

    SYNC = "SYNC"
    ASYNC = "ASYNC"
    ONEWAY = "ONEWAY"


@dataclass(slots=True)
class SendContext:
    """The argument of a `SendHook`: one attempt to send.

    Attributes:
        producer_group: The producer's group.
        messages: The messages; in `before`, a hook may replace them by as many others, such as with more properties.
            Empty for rows of an Arrow table.
        queue: The target queue, with the namespace in its topic.
        broker_address: Address of the broker.
        mode: Whether the caller waits for the answer.
        message_type: The kind of the message.
        unique_id: The message id; for a batch all ids, separated by commas.
        body_length: Bytes of the body as sent, after compression.
        result: The result; None in `before`, for a oneway send and after a failure.
        error: The error of a failed attempt.
        notes: Values that a hook stores in `before` for `after`.
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
    """Called before and after each attempt to send, on the thread that sends. Exceptions are logged.

    Example:
        >>> from rmqfast import EmbeddedCluster, Message, Producer
        >>> class Log:
        ...     name = "log"
        ...
        ...     def before(self, context):
        ...         pass
        ...
        ...     def after(self, context):
        ...         print(context.queue.topic, context.result.status.value)
        >>> with EmbeddedCluster() as cluster, Producer("shop", name_server=cluster.name_server) as producer:
        ...     producer.register_send_hook(Log())
        ...     sent = producer.send(Message("orders", b"paid"))
        orders SEND_OK
    """

    @property
    def name(self) -> str:
        """The name of the hook in logs."""

    def before(self, context: SendContext) -> None:
        """Called before a message is sent."""

    def after(self, context: SendContext) -> None:
        """Called after an attempt, even if it failed."""


@dataclass(frozen=True, slots=True)
class EndTransactionContext:
    """The argument of an `EndTransactionHook`: the end of a transaction.

    Attributes:
        producer_group: The group, with its namespace.
        message: The `Message` that was sent; after a broker's check, the broker's `MessageView`.
        broker_address: Address of the broker that gets the result.
        message_id: The producer's message id.
        transaction_id: The same id; None if the transaction was not executed.
        state: The state of the transaction.
        is_from_check: Whether a broker checked the transaction.
    """

    producer_group: str
    message: Any
    broker_address: str
    message_id: str
    transaction_id: str | None
    state: LocalTransactionState
    is_from_check: bool


class EndTransactionHook(Protocol):
    """Called before the end of a transaction is reported to the broker. Exceptions are logged."""

    @property
    def name(self) -> str:
        """The name of the hook in logs."""

    def end_transaction(self, context: EndTransactionContext) -> None:
        """Called when a transaction has ended. Its state may be unknown."""


class _HasName(Protocol):
    @property
    def name(self) -> str: ...


H = TypeVar("H", bound=_HasName)


class Hooks(Generic[H]):
    """The registered hooks of one kind. An exception in a hook is logged and does not affect the send."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._hooks: tuple[H, ...] = ()
        #: Whether hooks are registered; an attribute, because each send reads it.
        self.are_there: bool = False

    def add(self, hook: H) -> None:
        self._hooks = (*self._hooks, hook)
        self.are_there = True
        _log.info("register %s Hook, %s", self._kind, hook.name)

    def tell(self, call: Callable[[H], None]) -> None:
        """Calls a function with each hook, in the order in which they were registered."""
        for hook in self._hooks:
            try:
                call(hook)
            except Exception:  # noqa: BLE001 - as above
                _log.warning("the %s hook %s failed", self._kind, hook.name, exc_info=True)


class HookedSends:
    """Calls hooks around each attempt to send. Rust calls it, but only if hooks are registered."""

    def __init__(self, hooks: Hooks[SendHook], encoder: MessageEncoder, group: str, most_bytes: int) -> None:
        self._hooks, self._encoder, self._group, self._most_bytes = hooks, encoder, group, most_bytes

    def before(
        self, messages: Sequence[Message], outgoing: Outgoing, queue: MessageQueue, address: str, mode: str
    ) -> tuple[SendContext, Outgoing]:
        """Calls the hooks before an attempt. Returns the request to send, which hooks may have changed."""
        if queue.topic != outgoing.topic:
            queue = MessageQueue(outgoing.topic, queue.broker_name, queue.queue_id)
        kind = _message_type(messages, outgoing)
        context = SendContext(
            self._group, messages, queue, address, CommunicationMode(mode), kind, outgoing.unique_id, len(outgoing)
        )
        self._hooks.tell(lambda hook: hook.before(context))
        return context, outgoing if context.messages is messages else self._replace(context.messages, outgoing)

    def after(self, context: SendContext, end: SendResult | RmqError | None) -> None:
        """Calls the hooks with the result or the error of an attempt. `end` is None for a oneway send."""
        if isinstance(end, SendResult):
            context.result = end
        else:
            context.error = end
        self._hooks.tell(lambda hook: hook.after(context))

    def _replace(self, messages: Sequence[Message], outgoing: Outgoing) -> Outgoing:
        """Encodes messages that hooks have replaced, with the same ids. If that fails, returns the old request."""
        ids = outgoing.unique_id.split(",")
        try:
            kept = [_with_id(message, unique_id) for message, unique_id in zip(messages, ids, strict=True)]
            if outgoing.code == RequestCode.SEND_BATCH_MESSAGE:
                batch = self._encoder.encode_batch(kept, outgoing.topic, kept[0].wait_store)
                check_batch_size(len(batch), self._most_bytes)
                return batch
            flag = outgoing.sys_flag & _PREPARED
            return self._encoder.encode(
                kept[0], outgoing.topic, transaction_properties(self._group) if flag else [], flag
            )
        except (RmqError, ValueError, TypeError):
            _log.warning("what hooks made of message %s cannot be sent, it is sent as it was", ids[0], exc_info=True)
            return outgoing


def transaction_properties(group: str) -> list[tuple[str, str]]:
    """Returns the properties by which a broker recognises a half message."""
    return [("TRAN_MSG", "true"), ("PGROUP", group)]


def _with_id(message: Message, unique_id: str) -> Message:
    return replace(message, properties={**message.properties, "UNIQ_KEY": unique_id})


def _message_type(messages: Sequence[Message], outgoing: Outgoing) -> MessageType:
    if outgoing.sys_flag & _PREPARED:
        return MessageType.TRANSACTION_HALF
    is_delayed = any(message.delay_level or not _DELAYING.isdisjoint(message.properties) for message in messages)
    return MessageType.DELAY if is_delayed else MessageType.NORMAL
