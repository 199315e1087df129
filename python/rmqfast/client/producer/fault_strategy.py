"""Which queue is tried next where brokers that were slow of late are left alone.

Source: `MQFaultStrategy`, `LatencyFaultToleranceImpl`.
"""

from __future__ import annotations

import random
import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rmqfast.client.producer.publish_queues import PublishQueues, ThreadLocalIndex
from rmqfast.message import MessageQueue
from rmqfast.threads import new_lock

#: From how many milliseconds on an answer is how slow,
LATENCY_MAX = (50, 100, 550, 1000, 2000, 3000, 15000)
#: and how many milliseconds its broker is left alone then.
NOT_AVAILABLE_DURATION = (0, 0, 30_000, 60_000, 120_000, 180_000, 600_000)
#: What a call counts as that failed, in milliseconds.
ISOLATION_LATENCY = 30_000


def not_available_duration(latency: int) -> int:
    """How long a broker is left alone whose answer took that long, in milliseconds.

    Example:
        >>> [not_available_duration(latency) for latency in (49, 549, 550, 3000, 30_000)]
        [0, 0, 30000, 180000, 600000]

    Source: `MQFaultStrategy.computeNotAvailableDuration`.
    """
    level = bisect_right(LATENCY_MAX, latency) - 1
    return NOT_AVAILABLE_DURATION[level] if level >= 0 else 0


class FaultStrategy:
    """Chooses queues.

    Source: `MQFaultStrategy`.
    """

    def __init__(self, clock: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000) -> None:
        self.tolerance: Final = LatencyFaultTolerance(clock)

    def select(self, queues: PublishQueues) -> MessageQueue:
        """The queue of a topic to try next.

        Source: `MQFaultStrategy.selectOneMessageQueue`.
        """
        listed, start = queues.queues, queues.next_index()
        for step in range(len(listed)):
            queue = listed[(start + step) % len(listed)]
            if self.tolerance.is_available(queue.broker_name):
                return queue
        return self._best_of_slow(queues) or queues.select()

    def update(self, broker_name: str, latency: int, *, isolates: bool = False) -> None:
        """Takes how a call went.

        Args:
            broker_name: The broker.
            latency: How long it took, in milliseconds.
            isolates: Whether it failed: then it counts as a very slow one.

        Source: `MQFaultStrategy.updateFaultItem`.
        """
        counted = ISOLATION_LATENCY if isolates else latency
        self.tolerance.update(broker_name, latency, not_available_duration(counted))

    def _best_of_slow(self, queues: PublishQueues) -> MessageQueue | None:
        broker_name = self.tolerance.pick_one_at_least()
        if broker_name is None:
            return None
        write_queues = queues.info.write_queue_nums(broker_name)
        if write_queues <= 0:
            self.tolerance.remove(broker_name)
            return None
        queues.select()  # Java takes a step for a queue whose broker and number it then changes
        return MessageQueue(queues.shown_topic, broker_name, queues.next_index() % write_queues)


@dataclass(slots=True)
class FaultItem:
    """What is known of a broker.

    Attributes:
        name: The broker.
        latency: How long its last answer took, in milliseconds.
        start: From when on it is to be used, in milliseconds.
    """

    name: str
    latency: int
    start: int

    def is_available(self, now: int) -> bool:
        """Whether it may be used."""
        return now >= self.start

    def order(self, now: int) -> tuple[bool, int, int]:
        """The better, the smaller."""
        return not self.is_available(now), self.latency, self.start


class LatencyFaultTolerance:
    """Brokers that are left alone for a while, by name.

    Source: `LatencyFaultToleranceImpl`.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._items: dict[str, FaultItem] = {}
        self._which = ThreadLocalIndex()
        self._lock = new_lock()

    def update(self, name: str, latency: int, not_available: int) -> None:
        """Takes how long an answer took.

        Args:
            name: The broker.
            latency: How long it took, in milliseconds.
            not_available: How long to leave it alone, in milliseconds.
        """
        with self._lock:
            self._items[name] = FaultItem(name, latency, self._clock() + not_available)

    def is_available(self, name: str) -> bool:
        """Whether a broker may be used; one of which nothing is known may."""
        item = self._items.get(name)
        return item is None or item.is_available(self._clock())

    def remove(self, name: str) -> None:
        """Forgets a broker."""
        with self._lock:
            self._items.pop(name, None)

    def pick_one_at_least(self) -> str | None:
        """One of the better half of the brokers of which something is known; `None` where there are none.

        Source: `LatencyFaultToleranceImpl.pickOneAtLeast`.
        """
        with self._lock:
            items = list(self._items.values())
        if not items:
            return None
        # as Java: chance decides between brokers that do equally well
        random.shuffle(items)
        now = self._clock()
        items.sort(key=lambda item: item.order(now))
        half = len(items) // 2
        return items[0 if half <= 0 else self._which.increment() % half].name
