"""The statuses that listeners return, and the contexts that listeners get.

Source: RocketMQ's `ConsumeConcurrentlyStatus`, `ConsumeOrderlyStatus`, `ConsumeConcurrentlyContext`,
`ConsumeOrderlyContext`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, TypeAlias

from rmqfast._native import MessageView
from rmqfast.message import MessageQueue

#: The default `ack_index`: all messages of a call are consumed.
ALL_ACKNOWLEDGED = 2**31 - 1


class ConsumeConcurrentlyStatus(StrEnum):
    """The status that a listener returns if messages are consumed in any order.

    Attributes:
        CONSUME_SUCCESS: The messages up to the context's `ack_index` are consumed.
        RECONSUME_LATER: The messages are redelivered later.

    Example:
        >>> from rmqfast import ConsumeConcurrentlyStatus
        >>> def listener(messages, context):
        ...     for message in messages:
        ...         print(message.body)
        ...     return ConsumeConcurrentlyStatus.CONSUME_SUCCESS
    """

    CONSUME_SUCCESS = "CONSUME_SUCCESS"
    RECONSUME_LATER = "RECONSUME_LATER"


class ConsumeOrderlyStatus(StrEnum):
    """The status that a listener returns if messages are consumed in order.

    Attributes:
        SUCCESS: The messages are consumed.
        ROLLBACK: Without `auto_commit`: all messages since the last COMMIT are redelivered after a pause.
        COMMIT: Without `auto_commit`: all messages since the last COMMIT are consumed.
        SUSPEND_CURRENT_QUEUE_A_MOMENT: The messages are redelivered after a pause, before others of the queue.

    Example:
        >>> from rmqfast import ConsumeOrderlyStatus
        >>> def listener(messages, context):
        ...     return ConsumeOrderlyStatus.SUCCESS
    """

    SUCCESS = "SUCCESS"
    ROLLBACK = "ROLLBACK"
    COMMIT = "COMMIT"
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "SUSPEND_CURRENT_QUEUE_A_MOMENT"


#: The status that a failure of the listener counts as, by the type of its status.
AGAIN: Mapping[type[StrEnum], StrEnum] = {
    ConsumeConcurrentlyStatus: ConsumeConcurrentlyStatus.RECONSUME_LATER,
    ConsumeOrderlyStatus: ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT,
}
#: Statuses after which messages are consumed.
DONE = frozenset({ConsumeConcurrentlyStatus.CONSUME_SUCCESS, ConsumeOrderlyStatus.SUCCESS, ConsumeOrderlyStatus.COMMIT})


class ConsumeConcurrentlyContext:
    """The context of a listener's call, which the listener may change.

    Attributes:
        queue: The queue of the messages.
        delay_level_when_next_consume: Delay level of redelivered messages: -1 makes them dead letters, 0 grows with
            each retry, a positive number is that level.
        ack_index: With CONSUME_SUCCESS: index of the last consumed message, from 0.
    """

    __slots__ = ("ack_index", "delay_level_when_next_consume", "queue")

    def __init__(self, queue: MessageQueue) -> None:
        self.queue: MessageQueue = queue
        self.delay_level_when_next_consume: int = 0
        self.ack_index: int = ALL_ACKNOWLEDGED


class ConsumeOrderlyContext:
    """The context of a listener's call, which the listener may change.

    Attributes:
        queue: The queue of the messages.
        auto_commit: Whether SUCCESS commits the offset; otherwise only COMMIT does.
        suspend_current_queue_time: Seconds until messages are redelivered; -1 for the consumer's option.
    """

    __slots__ = ("auto_commit", "queue", "suspend_current_queue_time")

    def __init__(self, queue: MessageQueue) -> None:
        self.queue: MessageQueue = queue
        self.auto_commit: bool = True
        self.suspend_current_queue_time: float = -1.0


#: A listener for messages in any order, called concurrently.
ConcurrentListener: TypeAlias = Callable[[tuple[MessageView, ...], ConsumeConcurrentlyContext], Any]
#: A listener for messages of a queue in order, one call at a time.
OrderlyListener: TypeAlias = Callable[[tuple[MessageView, ...], ConsumeOrderlyContext], Any]


def in_order(listener: OrderlyListener) -> OrderlyListener:
    """Marks a listener that consumes each queue in order, as Java's `MessageListenerOrderly` does. Returns it.

    Example:
        >>> @in_order
        ... def listen(messages, context):
        ...     return ConsumeOrderlyStatus.SUCCESS
        >>> is_in_order(listen)
        True
    """
    listener.is_in_order = True  # type: ignore[attr-defined]
    return listener


def is_in_order(listener: object) -> bool:
    return bool(getattr(listener, "is_in_order", False))
