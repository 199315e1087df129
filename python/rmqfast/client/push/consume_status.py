"""Statuses that listeners return, and contexts that they get.

Source: RocketMQ's `ConsumeConcurrentlyStatus`, `ConsumeOrderlyStatus`, `ConsumeConcurrentlyContext`,
`ConsumeOrderlyContext`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, TypeAlias

from rmqfast._native import MessageView
from rmqfast.message import MessageQueue

#: All messages of a call are consumed.
ALL_ACKNOWLEDGED = 2**31 - 1


class ConsumeConcurrentlyStatus(StrEnum):
    """The result of consuming messages in any order.

    Attributes:
        CONSUME_SUCCESS: They are done, up to the context's `ack_index`.
        RECONSUME_LATER: They are to come once more, later.

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
    """The result of consuming messages in order.

    Attributes:
        SUCCESS: They are done.
        ROLLBACK: Without `auto_commit`: all since the last COMMIT come once more, after a moment.
        COMMIT: Without `auto_commit`: all since the last COMMIT are done.
        SUSPEND_CURRENT_QUEUE_A_MOMENT: They come once more, after a moment, and before all others of the queue.

    Example:
        >>> from rmqfast import ConsumeOrderlyStatus
        >>> def listener(messages, context):
        ...     return ConsumeOrderlyStatus.SUCCESS
    """

    SUCCESS = "SUCCESS"
    ROLLBACK = "ROLLBACK"
    COMMIT = "COMMIT"
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "SUSPEND_CURRENT_QUEUE_A_MOMENT"


#: What a listener's failure counts as, by the kind of its answers.
AGAIN: Mapping[type[StrEnum], StrEnum] = {
    ConsumeConcurrentlyStatus: ConsumeConcurrentlyStatus.RECONSUME_LATER,
    ConsumeOrderlyStatus: ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT,
}
#: Answers by which messages are done.
DONE = frozenset({ConsumeConcurrentlyStatus.CONSUME_SUCCESS, ConsumeOrderlyStatus.SUCCESS, ConsumeOrderlyStatus.COMMIT})


class ConsumeConcurrentlyContext:
    """The context of a listener's call, which the listener may change.

    Attributes:
        queue: Where the messages come from.
        delay_level_when_next_consume: Of messages that come once more: -1 for the dead letters, 0 for a level that
            grows with the times it was tried, above 0 for that level.
        ack_index: With CONSUME_SUCCESS, the last message that is done, counted from 0.
    """

    __slots__ = ("ack_index", "delay_level_when_next_consume", "queue")

    def __init__(self, queue: MessageQueue) -> None:
        self.queue: MessageQueue = queue
        self.delay_level_when_next_consume: int = 0
        self.ack_index: int = ALL_ACKNOWLEDGED


class ConsumeOrderlyContext:
    """The context of a listener's call, which the listener may change.

    Attributes:
        queue: Where the messages come from.
        auto_commit: Whether SUCCESS stores the offset; without, only COMMIT does.
        suspend_current_queue_time: After how many seconds messages come once more; -1 for what the consumer has.
    """

    __slots__ = ("auto_commit", "queue", "suspend_current_queue_time")

    def __init__(self, queue: MessageQueue) -> None:
        self.queue: MessageQueue = queue
        self.auto_commit: bool = True
        self.suspend_current_queue_time: float = -1.0


#: Takes messages that may be consumed in any order, many calls at a time.
ConcurrentListener: TypeAlias = Callable[[tuple[MessageView, ...], ConsumeConcurrentlyContext], Any]
#: Takes messages of a queue in its order, one call at a time.
OrderlyListener: TypeAlias = Callable[[tuple[MessageView, ...], ConsumeOrderlyContext], Any]


def in_order(listener: OrderlyListener) -> OrderlyListener:
    """Marks a listener that consumes each queue in order: `MessageListenerOrderly` in Java.

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
    """Whether a listener is marked by `in_order`."""
    return bool(getattr(listener, "is_in_order", False))
