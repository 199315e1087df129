"""Queues and members on a ring of hashes.

Source: `ConsistentHashRouter`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import md5

from rmqfast.client.consumer.strategies.strategy import index_of, queue_text
from rmqfast.errors import ArgumentError
from rmqfast.message import MessageQueue


def ring_hash(key: str) -> int:
    """Where on the ring a text is: the first four bytes of its MD5.

    Source: `ConsistentHashRouter.MD5Hash`.
    """
    return int.from_bytes(md5(key.encode(), usedforsecurity=False).digest()[:4], "big")


@dataclass(frozen=True, slots=True)
class AllocateMessageQueueConsistentHash:
    """A queue is that member's who is next on the ring: few queues move when a member comes or goes.

    Attributes:
        virtual_node_count: How many places each member has on the ring.
        custom_hash: Where a text is on the ring, if not by MD5.

    Raises:
        ArgumentError: A negative number of places.

    Example:
        >>> queues = [MessageQueue("t", "broker-a", n) for n in range(8)]
        >>> members = ["CID-0", "CID-1", "CID-2"]
        >>> ring = AllocateMessageQueueConsistentHash()
        >>> [[q.queue_id for q in ring.allocate("g", m, queues, members)] for m in members]
        [[5, 6, 7], [2, 4], [0, 1, 3]]

    Source: `AllocateMessageQueueConsistentHash`.
    """

    virtual_node_count: int = 10
    custom_hash: Callable[[str], int] | None = None
    name: str = "CONSISTENT_HASH"

    def __post_init__(self) -> None:
        if self.virtual_node_count < 0:
            raise ArgumentError(f"illegal virtualNodeCnt :{self.virtual_node_count}")

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """See `AllocateMessageQueueStrategy`."""
        if index_of(group, client_id, queues, client_ids) is None:
            return []
        place = self.custom_hash or ring_hash
        ring = self._ring(client_ids, place)
        places = sorted(ring)
        if not places:
            return []

        def owner(queue: MessageQueue) -> str:
            return ring[places[bisect_left(places, place(queue_text(queue))) % len(places)]]

        return [queue for queue in queues if owner(queue) == client_id]

    def _ring(self, client_ids: Sequence[str], place: Callable[[str], int]) -> dict[int, str]:
        """Members by place; who is named twice has twice as many.

        Source: `ConsistentHashRouter.addNode`.
        """
        ring: dict[int, str] = {}
        seen: set[str] = set()
        for member in client_ids:
            # counted in the ring, as places may have gone to others whose hash is the same
            first = sum(other == member for other in ring.values()) if member in seen else 0
            seen.add(member)
            ring.update((place(f"{member}-{first + node}"), member) for node in range(self.virtual_node_count))
        return ring
