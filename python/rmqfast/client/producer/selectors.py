"""Chooses the queue of a message, for an application.

Source: `MessageQueueSelector`, `SelectMessageQueueByHash`, `SelectMessageQueueByRandom`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from rmqfast.message import Message, MessageQueue
from rmqfast.remoting.hash_map import java_hash

#: Chooses one of the queues for a message, by an argument of the application's.
QueueSelector: TypeAlias = Callable[[Sequence[MessageQueue], Message, Any], MessageQueue | None]

_SIGN = 1 << 31


def select_by_hash(queues: Sequence[MessageQueue], _message: Message, key: str | int) -> MessageQueue:
    """The queue of all messages with that key, the same one that a Java producer chooses.

    Args:
        queues: The queues of the topic, in their order.
        key: A text, or a number: up to 32 bits as Java's `Integer`, beyond as its `Long`.

    Example:
        >>> queues = [MessageQueue("t", "b", n) for n in range(4)]
        >>> [select_by_hash(queues, Message("t", b"x"), key).queue_id for key in ("TagA", "polygenelubricants", -7)]
        [3, 0, 3]
    """
    return queues[abs(_signed_hash(key)) % len(queues)]


def select_by_random(queues: Sequence[MessageQueue], _message: Message, _argument: object = None) -> MessageQueue:
    """Any queue.

    Example:
        >>> from rmqfast import EmbeddedCluster, Message, Producer
        >>> from rmqfast.client.producer import select_by_random
        >>> with EmbeddedCluster() as cluster, Producer("shop", name_server=cluster.name_server) as producer:
        ...     sent = producer.send(Message("orders", b"paid"), selector=select_by_random)
        >>> 0 <= sent.queue.queue_id < 4
        True
    """
    return random.choice(queues)  # noqa: S311 - no secret


def _signed_hash(key: str | int) -> int:
    if isinstance(key, int) and -_SIGN <= key < _SIGN:
        return key
    value = java_hash(key)
    return value - (1 << 32) if value & _SIGN else value
