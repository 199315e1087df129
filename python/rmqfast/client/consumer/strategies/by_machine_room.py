"""Queues of certain machine rooms only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rmqfast.client.consumer.strategies.strategy import index_of
from rmqfast.message import MessageQueue


@dataclass(frozen=True, slots=True)
class AllocateMessageQueueByMachineRoom:
    """Shares out the queues of brokers that are called `room@name` and stand in certain rooms.

    Attributes:
        consumer_idcs: The rooms.

    Source: `AllocateMessageQueueByMachineRoom`.
    """

    consumer_idcs: frozenset[str]
    name: str = "MACHINE_ROOM"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """See `AllocateMessageQueueStrategy`."""
        index = index_of(group, client_id, queues, client_ids)
        if index is None:
            return []
        kept = [queue for queue in queues if self._is_ours(queue)]
        share, rest = divmod(len(kept), len(client_ids))
        mine = kept[index * share : (index + 1) * share]
        return [*mine, kept[index + share * len(client_ids)]] if rest > index else mine

    def _is_ours(self, queue: MessageQueue) -> bool:
        # two parts, as Java splits: an end of nothing but "@" is no part
        parts = queue.broker_name.rstrip("@").split("@")
        return len(parts) == 2 and parts[0] in self.consumer_idcs
