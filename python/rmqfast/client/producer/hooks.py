"""Calls an application's hooks at each attempt to send, and where transactions end.

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
    """The caller of a send: it waits, is called back, or never knows."""

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
    """Is notified of each attempt to send, on the thread that makes it; what it raises is logged.

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
        """The name in logs."""

    def before(self, context: SendContext) -> None:
        """A message is about to be sent."""

    def after(self, context: SendContext) -> None:
        """It was sent, or not."""


@dataclass(frozen=True, slots=True)
class EndTransactionContext:
    """The end of a transaction.

    Attributes:
        producer_group: The group, with its namespace.
        message: What was sent, a `Message`; where a broker asked, as the broker has it, a `MessageView`.
        broker_address: The broker that is told.
        message_id: The id that the producer gave.
        transaction_id: The same; `None` where the transaction was not carried out.
        state: How it ended.
        is_from_check: Whether a broker asked.
    """

    producer_group: str
    message: Any
    broker_address: str
    message_id: str
    transaction_id: str | None
    state: LocalTransactionState
    is_from_check: bool


class EndTransactionHook(Protocol):
    """Is notified of each transaction before the broker is; what it raises is logged."""

    @property
    def name(self) -> str:
        """The name in logs."""

    def end_transaction(self, context: EndTransactionContext) -> None:
        """A transaction has ended, or nobody knows how."""


class _HasName(Protocol):
    @property
    def name(self) -> str: ...


H = TypeVar("H", bound=_HasName)


class Hooks(Generic[H]):
    """All hooks of one kind; what one raises is logged, and keeps no message from being sent."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._hooks: tuple[H, ...] = ()
        #: Whether there are some; an attribute, as each send asks.
        self.are_there: bool = False

    def add(self, hook: H) -> None:
        """Adds one; it is told last."""
        self._hooks = (*self._hooks, hook)
        self.are_there = True
        _log.info("register %s Hook, %s", self._kind, hook.name)

    def tell(self, call: Callable[[H], None]) -> None:
        """Tells all of them, in their order."""
        for hook in self._hooks:
            try:
                call(hook)
            except Exception:  # noqa: BLE001 - as above
                _log.warning("the %s hook %s failed", self._kind, hook.name, exc_info=True)


class HookedSends:
    """Tells hooks of the attempts of a producer's sends; called from Rust, only where hooks are registered."""

    def __init__(self, hooks: Hooks[SendHook], encoder: MessageEncoder, group: str, most_bytes: int) -> None:
        self._hooks, self._encoder, self._group, self._most_bytes = hooks, encoder, group, most_bytes

    def before(
        self, messages: Sequence[Message], made: Outgoing, queue: MessageQueue, address: str, mode: str
    ) -> tuple[SendContext, Outgoing]:
        """Tells the hooks that messages are about to be sent; the request that goes out then."""
        if queue.topic != made.topic:
            queue = MessageQueue(made.topic, queue.broker_name, queue.queue_id)
        kind = _message_type(messages, made)
        context = SendContext(
            self._group, messages, queue, address, CommunicationMode(mode), kind, made.unique_id, len(made)
        )
        self._hooks.tell(lambda hook: hook.before(context))
        return context, made if context.messages is messages else self._replace(context.messages, made)

    def after(self, context: SendContext, end: SendResult | RmqError | None) -> None:
        """Tells the hooks how an attempt ended; `None` of a one-way send."""
        if isinstance(end, SendResult):
            context.result = end
        else:
            context.error = end
        self._hooks.tell(lambda hook: hook.after(context))

    def _replace(self, messages: Sequence[Message], made: Outgoing) -> Outgoing:
        """The request of what hooks put in a message's place, with the same ids; as it was, where that cannot be."""
        ids = made.unique_id.split(",")
        try:
            kept = [_with_id(message, unique_id) for message, unique_id in zip(messages, ids, strict=True)]
            if made.code == RequestCode.SEND_BATCH_MESSAGE:
                batch = self._encoder.encode_batch(kept, made.topic, kept[0].wait_store)
                check_batch_size(len(batch), self._most_bytes)
                return batch
            flag = made.sys_flag & _PREPARED
            return self._encoder.encode(kept[0], made.topic, transaction_properties(self._group) if flag else [], flag)
        except (RmqError, ValueError, TypeError):
            _log.warning("what hooks made of message %s cannot be sent, it is sent as it was", ids[0], exc_info=True)
            return made


def transaction_properties(group: str) -> list[tuple[str, str]]:
    """The properties that mark a half message."""
    return [("TRAN_MSG", "true"), ("PGROUP", group)]


def _with_id(message: Message, unique_id: str) -> Message:
    return replace(message, properties={**message.properties, "UNIQ_KEY": unique_id})


def _message_type(messages: Sequence[Message], made: Outgoing) -> MessageType:
    if made.sys_flag & _PREPARED:
        return MessageType.TRANSACTION_HALF
    is_delayed = any(message.delay_level or not _DELAYING.isdisjoint(message.properties) for message in messages)
    return MessageType.DELAY if is_delayed else MessageType.NORMAL
