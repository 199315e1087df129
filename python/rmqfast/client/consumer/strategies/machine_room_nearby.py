"""Queues of the member's own machine room, and of rooms where nobody is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rmqfast.client.consumer.strategies.strategy import AllocateMessageQueueStrategy, index_of, queue_text
from rmqfast.errors import ArgumentError
from rmqfast.message import MessageQueue


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


def _room(room: str | None, whose: str) -> str:
    if not room:
        raise ArgumentError(f"Machine room is null for {whose}")
    return room
