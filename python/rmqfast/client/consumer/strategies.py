"""Strategies that distribute the queues of a topic among the consumers of a group.

Source: RocketMQ's `AllocateMessageQueueStrategy`, `ConsistentHashRouter`, `AllocateMessageQueueAveragely`,
`AllocateMessageQueueAveragelyByCircle`, `AllocateMessageQueueByConfig`, `AllocateMessageQueueByMachineRoom`,
`AllocateMachineRoomNearby`, `AllocateMessageQueueConsistentHash`, `MessageQueue`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b, md5
from typing import Protocol

from rmqfast.errors import ArgumentError
from rmqfast.logs import logger_of
from rmqfast.message import MessageQueue

_log = logger_of(__name__)


class AllocateMessageQueueStrategy(Protocol):
    """Decides which queues a consumer gets. All consumers of a group must use the same strategy."""

    @property
    def name(self) -> str:
        """RocketMQ's name of the strategy."""

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """Returns the queues of the consumer `client_id`.

        Raises:
            ArgumentError: There are no queues or no members, or `client_id` is empty.
        """


@dataclass(frozen=True, slots=True)
class AllocateMessageQueueAveragely:
    """The default: each consumer gets adjacent queues. If there is a remainder, the first consumers get one more.

    Example:
        >>> queues = [MessageQueue("t", "b", n) for n in range(8)]
        >>> members = ["a", "b", "c"]
        >>> [[q.queue_id for q in AllocateMessageQueueAveragely().allocate("g", m, queues, members)] for m in members]
        [[0, 1, 2], [3, 4, 5], [6, 7]]
    """

    name: str = "AVG"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        index = index_of(group, client_id, queues, client_ids)
        if index is None:
            return []
        share, rest = divmod(len(queues), len(client_ids))
        start = index * share + min(index, rest)
        return list(queues[start : start + share + (index < rest)])


@dataclass(frozen=True, slots=True)
class AllocateMessageQueueAveragelyByCircle:
    """Gives the queues to the consumers one by one, in turn.

    Example:
        >>> queues = [MessageQueue("t", "b", n) for n in range(5)]
        >>> [q.queue_id for q in AllocateMessageQueueAveragelyByCircle().allocate("g", "a", queues, ["a", "b"])]
        [0, 2, 4]
    """

    name: str = "AVG_BY_CIRCLE"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        index = index_of(group, client_id, queues, client_ids)
        return [] if index is None else list(queues[index :: len(client_ids)])


@dataclass(frozen=True, slots=True)
class AllocateMessageQueueByConfig:
    """Gives this consumer the configured queues, without regard to the group's other consumers.

    Attributes:
        message_queues: The queues of this member.
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
        return list(self.message_queues)


@dataclass(frozen=True, slots=True)
class AllocateMessageQueueByMachineRoom:
    """Distributes only the queues of the given machine rooms. Broker names have the form `room@name`.

    Attributes:
        consumer_idcs: The machine rooms.
    """

    consumer_idcs: frozenset[str]
    name: str = "MACHINE_ROOM"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        index = index_of(group, client_id, queues, client_ids)
        if index is None:
            return []
        kept = [queue for queue in queues if self._is_ours(queue)]
        share, rest = divmod(len(kept), len(client_ids))
        mine = kept[index * share : (index + 1) * share]
        return [*mine, kept[index + share * len(client_ids)]] if rest > index else mine

    def _is_ours(self, queue: MessageQueue) -> bool:
        # Java's split drops trailing empty parts: exactly two must remain
        parts = queue.broker_name.rstrip("@").split("@")
        return len(parts) == 2 and parts[0] in self.consumer_idcs


@dataclass(frozen=True, slots=True)
class AllocateMachineRoomNearby:
    """Divides the queues of a machine room among the consumers there, or among all consumers if the room has none.

    Attributes:
        inner: The strategy within a room.
        broker_deploy_in: Returns the room of a queue.
        consumer_deploy_in: Returns the room of a member.
    """

    inner: AllocateMessageQueueStrategy
    broker_deploy_in: Callable[[MessageQueue], str | None]
    consumer_deploy_in: Callable[[str], str | None]

    @property
    def name(self) -> str:
        return f"MACHINE_ROOM_NEARBY-{self.inner.name}"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """Returns the queues of the consumer `client_id`.

        Raises:
            ArgumentError: The room of a queue or a member is unknown.
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
        share: list[MessageQueue] = []
        if mine in room_queues:
            share += self.inner.allocate(group, client_id, room_queues[mine], room_members[mine])
        for room, others in sorted(room_queues.items()):
            if room not in room_members:
                share += self.inner.allocate(group, client_id, others, client_ids)
        return share


@dataclass(frozen=True, slots=True)
class AllocateMessageQueueConsistentHash:
    """Gives a queue to the next consumer on a hash ring. Few queues move when a consumer joins or leaves.

    Attributes:
        virtual_node_count: Number of virtual nodes per member.
        custom_hash: The hash function. Default: MD5.

    Raises:
        ArgumentError: The number of virtual nodes is negative.

    Example:
        >>> queues = [MessageQueue("t", "broker-a", n) for n in range(8)]
        >>> members = ["CID-0", "CID-1", "CID-2"]
        >>> ring = AllocateMessageQueueConsistentHash()
        >>> [[q.queue_id for q in ring.allocate("g", m, queues, members)] for m in members]
        [[5, 6, 7], [2, 4], [0, 1, 3]]
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
        ring: dict[int, str] = {}
        seen: set[str] = set()
        for member in client_ids:
            # counted in the ring, because another member with the same hash may have replaced a node
            first = sum(other == member for other in ring.values()) if member in seen else 0
            seen.add(member)
            ring.update((place(f"{member}-{first + node}"), member) for node in range(self.virtual_node_count))
        return ring


@dataclass(frozen=True, slots=True)
class AllocateMessageQueueSticky:
    """Ranks the consumers for each queue by a hash. The first consumer whose share is not full gets the queue.

    When a member joins or leaves, most queues stay; shares differ by one at most. RocketMQ has no such strategy, so all
    members must be rmqfast's.

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
        if index_of(group, client_id, queues, client_ids) is None:
            return []
        # a member that is listed twice gets one share; nobody would take the second
        share, rest = divmod(len(queues), len(set(client_ids)))
        room = dict.fromkeys(client_ids, share)
        ranked = sorted((_rank(queue, member), queue, member) for queue in queues for member in room)
        owners: dict[MessageQueue, str] = {}
        for _, queue, member in ranked:
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
    return f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, queueId={queue.queue_id}]"


def index_of(group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> int | None:
    """Returns the index of a consumer in `client_ids`. If the consumer is missing there, logs this and returns None."""
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
    return int.from_bytes(md5(key.encode(), usedforsecurity=False).digest()[:4], "big")


def _rank(queue: MessageQueue, member: str) -> bytes:
    return blake2b(f"{queue.topic}\0{queue.broker_name}\0{queue.queue_id}\0{member}".encode(), digest_size=8).digest()
