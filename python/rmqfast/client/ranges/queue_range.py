"""A stretch of a queue."""

from __future__ import annotations

from typing import NamedTuple

from rmqfast.message import MessageQueue


class QueueRange(NamedTuple):
    """A stretch of a queue; whoever reads it, and however often, gets the same messages.

    Attributes:
        queue: The queue.
        start: The first queue offset.
        end: The one behind the last.

    Example:
        >>> len(QueueRange(MessageQueue("orders", "broker-a", 0), 5, 8).offsets)
        3

    Source: none; Java's consumers read on until they are shut down.
    """

    queue: MessageQueue
    start: int
    end: int

    @property
    def offsets(self) -> range:
        """The queue offsets in it."""
        return range(self.start, self.end)

    def __str__(self) -> str:
        queue = self.queue
        return f"{queue.topic}, broker {queue.broker_name}, queue {queue.queue_id}, offsets {self.start} to {self.end}"
