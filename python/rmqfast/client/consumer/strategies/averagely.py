"""Runs of neighbouring queues, as equal in length as they can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rmqfast.client.consumer.strategies.strategy import index_of
from rmqfast.message import MessageQueue


@dataclass(frozen=True, slots=True)
class AllocateMessageQueueAveragely:
    """The first members get one queue more where they do not come out even; the default.

    Example:
        >>> queues = [MessageQueue("t", "b", n) for n in range(8)]
        >>> members = ["a", "b", "c"]
        >>> [[q.queue_id for q in AllocateMessageQueueAveragely().allocate("g", m, queues, members)] for m in members]
        [[0, 1, 2], [3, 4, 5], [6, 7]]

    Source: `AllocateMessageQueueAveragely`.
    """

    name: str = "AVG"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """See `AllocateMessageQueueStrategy`."""
        index = index_of(group, client_id, queues, client_ids)
        if index is None:
            return []
        share, rest = divmod(len(queues), len(client_ids))
        start = index * share + min(index, rest)
        return list(queues[start : start + share + (index < rest)])
