"""Queues that stay where they are as far as equal shares allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from rmqfast.client.consumer.strategies.strategy import index_of
from rmqfast.message import MessageQueue


@dataclass(frozen=True, slots=True)
class AllocateMessageQueueSticky:
    """Each queue has a list of the members that it likes best, and goes to the first one who has room.

    Members work out their shares without talking to each other, so nothing may depend on what they had before: the
    liking is a hash of queue and member. When a member comes or goes, most queues stay; shares differ by one at most.
    RocketMQ has no such strategy: all members of the group must be rmqfast's.

    Example:
        >>> queues = [MessageQueue("t", "b", n) for n in range(16)]
        >>> def owners(*members: str) -> dict[int, str]:
        ...     sticky = AllocateMessageQueueSticky()
        ...     return {q.queue_id: m for m in members for q in sticky.allocate("g", m, queues, members)}
        >>> before, after = owners("a", "b", "c"), owners("a", "b")
        >>> sorted(map(list(before.values()).count, "abc"))
        [5, 5, 6]
        >>> sum(before[queue] != owner for queue, owner in after.items() if before[queue] != "c") < 6
        True
    """

    name: str = "STICKY"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """See `AllocateMessageQueueStrategy`."""
        if index_of(group, client_id, queues, client_ids) is None:
            return []
        # who is there twice under one name gets one share, or the other one would be nobody's
        share, rest = divmod(len(queues), len(set(client_ids)))
        room = dict.fromkeys(client_ids, share)
        liked = sorted((_liking(queue, member), queue, member) for queue in queues for member in room)
        owners: dict[MessageQueue, str] = {}
        for _, queue, member in liked:
            if queue in owners:
                continue
            if room[member] > 0:
                room[member] -= 1
            elif room[member] == 0 and rest > 0:
                rest -= 1
                room[member] = -1
            else:
                continue
            owners[queue] = member
        return [queue for queue in queues if owners.get(queue) == client_id]


def _liking(queue: MessageQueue, member: str) -> bytes:
    return blake2b(f"{queue.topic}\0{queue.broker_name}\0{queue.queue_id}\0{member}".encode(), digest_size=8).digest()
