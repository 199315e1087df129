"""The queues of a topic, and which one a thread sends to next.

Source: `TopicPublishInfo.selectOneMessageQueue`, `ThreadLocalIndex`.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from rmqfast.client.instance import TopicPublishInfo
from rmqfast.message import MessageQueue

_POSITIVE = 0x7FFFFFFF


class ThreadLocalIndex:
    """A counter for each thread, which begins anywhere.

    Args:
        start: Where a thread begins.

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
            index: int = (local.index + 1) & _POSITIVE
        except AttributeError:
            index = (self._start() + 1) & _POSITIVE
        local.index = index
        return index


class PublishQueues:
    """The queues of a topic, in the order in which threads walk them; a route that changes makes a new one.

    Args:
        info: Where messages of the topic may go.
        index: Where threads are on their walk.
    """

    __slots__ = ("_index", "info", "queues", "topic")

    def __init__(self, info: TopicPublishInfo, index: ThreadLocalIndex | None = None) -> None:
        self.info, self.queues, self.topic = info, info.queues, info.topic
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
