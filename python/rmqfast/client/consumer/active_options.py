"""The options that pull and lite pull consumers share.

Source: RocketMQ's `DefaultMQPullConsumer`, `DefaultLitePullConsumer`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, get_args

from rmqfast.arguments import check_fields
from rmqfast.client.consumer.offset_store import OffsetStore
from rmqfast.client.consumer.strategies import AllocateMessageQueueAveragely, AllocateMessageQueueStrategy
from rmqfast.client.instance import MessageModel
from rmqfast.errors import ArgumentError, ClientError
from rmqfast.message import MessageQueue

#: Called with the topic, all its queues, and the queues that this member has now.
MessageQueueListener: TypeAlias = Callable[[str, frozenset[MessageQueue], frozenset[MessageQueue]], object]


@dataclass(frozen=True, kw_only=True, slots=True)
class ActiveOptions:
    """Options that pull and lite pull consumers share. Times are in seconds.

    Attributes:
        message_model: `CLUSTERING`: members share the messages. `BROADCASTING`: each member gets all messages.
        strategy: Distributes queues among members.
        offset_store: Stores the offsets. Default: the brokers, or a local file with `BROADCASTING`.
        broker_suspend: Longest time that a broker holds a pull without messages (Java's `brokerSuspendMaxTimeMillis`).
        suspend_timeout: Longest wait for the answer of such a pull (Java's `consumerTimeoutMillisWhenSuspend`).
        pull_timeout: Longest wait for other pulls (Java's `consumerPullTimeoutMillis`).
        message_queue_listener: Called when this member gains or loses queues; for a pull consumer, of its registered
            topics.

    Raises:
        ArgumentError: A number is out of range, or the message model is unknown.
        ClientError: `suspend_timeout` is shorter than `broker_suspend`.
    """

    message_model: MessageModel = "CLUSTERING"
    strategy: AllocateMessageQueueStrategy = field(default_factory=AllocateMessageQueueAveragely)
    offset_store: OffsetStore | None = None
    broker_suspend: float = 20.0
    suspend_timeout: float = 30.0
    pull_timeout: float = 10.0
    message_queue_listener: MessageQueueListener | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.message_model not in get_args(MessageModel):
            raise ArgumentError(f"message_model: expected one of {get_args(MessageModel)}, got {self.message_model!r}")
        for name in ("broker_suspend", "suspend_timeout", "pull_timeout"):
            check_range(name, getattr(self, name), 0.001, 86_400.0)
        if self.suspend_timeout < self.broker_suspend:
            raise ClientError(
                "Long polling mode, the consumer consumerTimeoutMillisWhenSuspend must greater than "
                "brokerSuspendMaxTimeMillis",
                next_step=f"suspend_timeout is {self.suspend_timeout} s, broker_suspend {self.broker_suspend} s",
            )

    def as_properties(self) -> dict[str, str]:
        """Returns the options as strings under Java's names, for administrators."""
        names: list[str] = list(self.__dataclass_fields__)
        return {name: _text(getattr(self, name)) for name in names if getattr(self, name) is not None}


def check_range(name: str, value: float, least: float, most: float) -> None:
    number: object = value
    if isinstance(number, bool) or not isinstance(number, int | float) or not least <= number <= most:
        raise ArgumentError(f"{name}: expected {least} to {most}, got {value!r}")


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str | int | float) else type(value).__name__
