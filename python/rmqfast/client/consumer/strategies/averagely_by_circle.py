"""Queues dealt out like cards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rmqfast.client.consumer.strategies.strategy import index_of
from rmqfast.message import MessageQueue


@dataclass(frozen=True, slots=True)
class AllocateMessageQueueAveragelyByCircle:
    """The first queue is the first member's, the next one the next member's, and so on, round and round.

    Example:
        >>> queues = [MessageQueue("t", "b", n) for n in range(5)]
        >>> [q.queue_id for q in AllocateMessageQueueAveragelyByCircle().allocate("g", "a", queues, ["a", "b"])]
        [0, 2, 4]

    Source: `AllocateMessageQueueAveragelyByCircle`.
    """

    name: str = "AVG_BY_CIRCLE"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """See `AllocateMessageQueueStrategy`."""
        index = index_of(group, client_id, queues, client_ids)
        return [] if index is None else list(queues[index :: len(client_ids)])
