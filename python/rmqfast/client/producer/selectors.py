"""Selectors that choose the queue of a message.

Source: `MessageQueueSelector`, `SelectMessageQueueByHash`, `SelectMessageQueueByRandom`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from rmqfast.message import Message, MessageQueue
from rmqfast.remoting.hash_map import java_hash

#: Chooses a queue; called with the queues, the message and the application's argument.
QueueSelector: TypeAlias = Callable[[Sequence[MessageQueue], Message, Any], MessageQueue | None]

_SIGN = 1 << 31


def select_by_hash(queues: Sequence[MessageQueue], _message: Message, key: str | int) -> MessageQueue:
    """Returns the queue for a key. A Java producer chooses the same queue, and all messages of the key go there.

    Args:
        queues: The queues of the topic, in their order.
        key: A string or a number, hashed as Java's `Integer` up to 32 bits, otherwise as `Long`.

    Example:
        >>> queues = [MessageQueue("t", "b", n) for n in range(4)]
        >>> [select_by_hash(queues, Message("t", b"x"), key).queue_id for key in ("TagA", "polygenelubricants", -7)]
        [3, 0, 3]
    """
    return queues[abs(_signed_hash(key)) % len(queues)]


def select_by_random(queues: Sequence[MessageQueue], _message: Message, _argument: object = None) -> MessageQueue:
    """Returns a random queue."""
    return random.choice(queues)  # noqa: S311 - not a secret


def _signed_hash(key: str | int) -> int:
    if isinstance(key, int) and -_SIGN <= key < _SIGN:
        return key
    value = java_hash(key)
    return value - (1 << 32) if value & _SIGN else value
