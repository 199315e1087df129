"""What filters leave of the queues of a topic."""

from __future__ import annotations

from dataclasses import dataclass

from rmqfast.client.ranges import QueueRange
from rmqfast.message import MessageQueue

__all__ = ["RangeCut"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RangeCut:
    """Queues, and offsets in all of them; unlike offsets that a user names, there need not be any of these.

    Attributes:
        broker_names: Only queues of these brokers.
        queue_ids: Only queues with these numbers.
        start: Queue offsets from here on.
        end: Queue offsets before this.

    Example:
        >>> cut = RangeCut(queue_ids=frozenset({0}), start=5)
        >>> cut.of(QueueRange(MessageQueue("orders", "broker-a", 0), 0, 9)).offsets
        range(5, 9)
        >>> cut.has(MessageQueue("orders", "broker-a", 1))
        False

    Source: none; Java's consumers take whole queues.
    """

    broker_names: frozenset[str] | None = None
    queue_ids: frozenset[int] | None = None
    start: int | None = None
    end: int | None = None

    def has(self, queue: MessageQueue) -> bool:
        """Whether anything of a queue is left."""
        is_its_broker = self.broker_names is None or queue.broker_name in self.broker_names
        return is_its_broker and (self.queue_ids is None or queue.queue_id in self.queue_ids)

    def of(self, wanted: QueueRange) -> QueueRange:
        """What is left of a range of a queue that is; it may be empty."""
        start = wanted.start if self.start is None else max(wanted.start, self.start)
        end = wanted.end if self.end is None else min(wanted.end, self.end)
        return wanted._replace(start=start, end=max(start, end))
