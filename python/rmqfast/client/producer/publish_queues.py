"""The queues of a topic, and which one a message goes to: the thread's next one, or the one of an application's choice.

Source: `TopicPublishInfo.selectOneMessageQueue`, `ThreadLocalIndex`, `SelectMessageQueueByHash`.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from rmqfast.client.instance import TopicPublishInfo
from rmqfast.client.instance.namespaces import unwrap
from rmqfast.message import Message, MessageQueue
from rmqfast.remoting.hash_map import java_hash

#: Chooses one of the queues for a message, by an argument of the application's.
QueueSelector: TypeAlias = Callable[[Sequence[MessageQueue], Message, Any], MessageQueue | None]

_POSITIVE = 0x7FFFFFFF
_SIGN = 1 << 31


class ThreadLocalIndex:
    """A counter for each thread, which begins anywhere.

    Example:
        >>> index = ThreadLocalIndex(lambda: 5)
        >>> index.increment(), index.increment()
        (6, 7)

    Source: `ThreadLocalIndex`.
    """

    __slots__ = ("_local", "_start")

    def __init__(self, start: Callable[[], int] = lambda: random.getrandbits(31)) -> None:
        self._local, self._start = threading.local(), start

    def increment(self) -> int:
        """The thread's next number, from 0 to 2^31 - 1."""
        local = self._local
        try:
            # one further before it is used, as Java's
            index: int = (local.index + 1) & _POSITIVE
        except AttributeError:
            index = (self._start() + 1) & _POSITIVE
        local.index = index
        return index


class PublishQueues:
    """The queues of a topic, in the order in which threads walk them; a route that changes makes a new one.

    Args:
        info: Where messages of the topic may go.
        namespace: What stands before the topic at brokers, and not for the application.
        index: Where threads are on their walk.

    Attributes:
        info: As given.
        topic: The topic as brokers know it.
        shown_topic: The topic as the application knows it.
        queues: The queues, with `shown_topic`.
    """

    __slots__ = ("_index", "info", "queues", "shown_topic", "topic")

    def __init__(self, info: TopicPublishInfo, namespace: str = "", index: ThreadLocalIndex | None = None) -> None:
        self.info: Final = info
        self.queues: Sequence[MessageQueue] = info.queues
        self.topic: Final = info.topic
        self.shown_topic: Final = unwrap(namespace, info.topic)
        if self.shown_topic != self.topic:
            self.queues = tuple(
                MessageQueue(self.shown_topic, queue.broker_name, queue.queue_id) for queue in info.queues
            )
        self._index = index or ThreadLocalIndex()

    def next_index(self) -> int:
        """Where the thread is on its walk, one further than before."""
        return self._index.increment()

    def select(self, last_broker: str | None = None) -> MessageQueue:
        """The next queue; where there is one on another broker than `last_broker`, the next of those.

        Source: `TopicPublishInfo.selectOneMessageQueue`.
        """
        queues = self.queues
        if last_broker is not None:
            for _ in queues:
                queue = queues[self._index.increment() % len(queues)]
                if queue.broker_name != last_broker:
                    return queue
        return queues[self._index.increment() % len(queues)]


def select_by_hash(queues: Sequence[MessageQueue], _message: Message, key: str | int) -> MessageQueue:
    """The queue of all messages with that key, the same one that a Java producer chooses.

    Args:
        queues: The queues of the topic, in their order.
        key: A text, or a number: up to 32 bits as Java's `Integer`, beyond as its `Long`.

    Example:
        >>> queues = [MessageQueue("t", "b", n) for n in range(4)]
        >>> [select_by_hash(queues, Message("t", b"x"), key).queue_id for key in ("TagA", "polygenelubricants", -7)]
        [3, 0, 3]

    Source: `SelectMessageQueueByHash`.
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

    Source: `SelectMessageQueueByRandom`.
    """
    return random.choice(queues)  # noqa: S311 - no secret


def _signed_hash(key: str | int) -> int:
    if isinstance(key, int) and -_SIGN <= key < _SIGN:
        return key
    value = java_hash(key)
    return value - (1 << 32) if value & _SIGN else value
