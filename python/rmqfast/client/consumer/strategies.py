"""Share the queues of a topic out among the members of a group.

Source: `AllocateMessageQueueStrategy` and the classes that implement it, `ConsistentHashRouter`.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b, md5
from typing import Protocol

from rmqfast.errors import ArgumentError
from rmqfast.message import MessageQueue

_log = logging.getLogger(__name__)


class AllocateMessageQueueStrategy(Protocol):
    """Which queues are a member's; all members of a group must have the same."""

    @property
    def name(self) -> str:
        """As RocketMQ calls it."""

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """The queues of one member.

        Args:
            group: The group.
            client_id: The member.
            queues: All queues, in their order.
            client_ids: All members, in the order of their names.

        Raises:
            ArgumentError: No queues, no members, or a member without a name.
        """


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


@dataclass(frozen=True, slots=True)
class AllocateMessageQueueByConfig:
    """The same queues whoever else is there; nobody sees to it that each is some member's.

    Attributes:
        message_queues: What this member gets.

    Source: `AllocateMessageQueueByConfig`.
    """

    message_queues: tuple[MessageQueue, ...] = ()
    name: str = "CONFIG"

    def allocate(
        self,
        group: str,  # noqa: ARG002 - as all strategies
        client_id: str,  # noqa: ARG002
        queues: Sequence[MessageQueue],  # noqa: ARG002
        client_ids: Sequence[str],  # noqa: ARG002
    ) -> list[MessageQueue]:
        """See `AllocateMessageQueueStrategy`."""
        return list(self.message_queues)


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


@dataclass(frozen=True, slots=True)
class AllocateMachineRoomNearby:
    """Each room's queues are shared out among that room's members, a room's without members among all.

    Attributes:
        inner: Shares out what is in one room.
        broker_deploy_in: The room of a queue.
        consumer_deploy_in: The room of a member.

    Source: `AllocateMachineRoomNearby`.
    """

    inner: AllocateMessageQueueStrategy
    broker_deploy_in: Callable[[MessageQueue], str | None]
    consumer_deploy_in: Callable[[str], str | None]

    @property
    def name(self) -> str:
        """As RocketMQ calls it."""
        return f"MACHINE_ROOM_NEARBY-{self.inner.name}"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """See `AllocateMessageQueueStrategy`.

        Raises:
            ArgumentError: A queue or a member whose room nobody knows.
        """
        if index_of(group, client_id, queues, client_ids) is None:
            return []
        room_queues: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            room_queues.setdefault(_room(self.broker_deploy_in(queue), f"mq {queue_text(queue)}"), []).append(queue)
        room_members: dict[str, list[str]] = {}
        for member in client_ids:
            room_members.setdefault(_room(self.consumer_deploy_in(member), f"consumer id {member}"), []).append(member)
        mine = _room(self.consumer_deploy_in(client_id), f"consumer id {client_id}")
        found: list[MessageQueue] = []
        if mine in room_queues:
            found += self.inner.allocate(group, client_id, room_queues[mine], room_members[mine])
        for room, of_room in sorted(room_queues.items()):
            if room not in room_members:
                found += self.inner.allocate(group, client_id, of_room, client_ids)
        return found


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


def queue_text(queue: MessageQueue) -> str:
    """A queue as Java writes it: what is hashed, and what errors say.

    Source: `MessageQueue.toString`.
    """
    return f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, queueId={queue.queue_id}]"


def index_of(group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> int | None:
    """Which one of the members it is; `None` where it is none, which is logged.

    Raises:
        ArgumentError: As `AllocateMessageQueueStrategy.allocate`.
    """
    if not client_id:
        raise ArgumentError("currentCID is empty")
    if not queues:
        raise ArgumentError("mqAll is null or mqAll empty")
    if not client_ids:
        raise ArgumentError("cidAll is null or cidAll empty")
    if client_id not in client_ids:
        _log.info("group %s: %s is not in the group yet: %s", group, client_id, client_ids)
        return None
    return client_ids.index(client_id)


def _room(room: str | None, whose: str) -> str:
    if not room:
        raise ArgumentError(f"Machine room is null for {whose}")
    return room


def ring_hash(key: str) -> int:
    """Where on the ring a text is: the first four bytes of its MD5.

    Source: `ConsistentHashRouter.MD5Hash`.
    """
    return int.from_bytes(md5(key.encode(), usedforsecurity=False).digest()[:4], "big")


def _liking(queue: MessageQueue, member: str) -> bytes:
    return blake2b(f"{queue.topic}\0{queue.broker_name}\0{queue.queue_id}\0{member}".encode(), digest_size=8).digest()
