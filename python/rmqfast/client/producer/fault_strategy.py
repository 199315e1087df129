"""Which queue is tried next: one after the other, or past brokers that were slow of late.

Source: `MQFaultStrategy`.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable

from rmqfast.client.producer.latency_fault_tolerance import LatencyFaultTolerance
from rmqfast.client.producer.publish_queues import PublishQueues
from rmqfast.message import MessageQueue

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

    Args:
        is_enabled: Whether slow brokers are left alone.
        clock: Milliseconds.

    Source: `MQFaultStrategy`.
    """

    def __init__(
        self, *, is_enabled: bool = False, clock: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000
    ) -> None:
        self.is_enabled = is_enabled
        self.tolerance = LatencyFaultTolerance(clock)

    def select(self, queues: PublishQueues, last_broker: str | None = None) -> MessageQueue:
        """The queue to try next.

        Args:
            queues: The queues of the topic.
            last_broker: The broker of the attempt before.

        Source: `MQFaultStrategy.selectOneMessageQueue`.
        """
        if not self.is_enabled:
            return queues.select(last_broker)
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
        if self.is_enabled:
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
        return MessageQueue(queues.info.topic, broker_name, queues.next_index() % write_queues)
