"""Groups that have members of Java and of rmqfast."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from rmqfast import MessageQueue

from .scene import JavaMember, Scene, Seen, until

_QUEUES = 8
_ROUND = 3 * _QUEUES


def members_of_both_kinds_share_the_queues_while_they_come_and_go(scene: Scene) -> None:
    """Each time the members have changed, each queue is one member's, and what is sent then comes once."""
    topic, group = "mixed", "mixing"
    queues = scene.topic(topic, _QUEUES)
    members: list[Seen | JavaMember] = [Seen() for _ in range(2)]
    first, second = (
        scene.push(group, topic, seen, instance_name=f"python-{number}") for number, seen in enumerate(members)
    )
    with ExitStack() as stack:
        first.start()
        _once(scene, group, queues, members, 1)
        with scene.java(group, topic, "--instance", "java-1") as java:
            members.append(java)
            _once(scene, group, queues, members, 2)
            stack.enter_context(second)
            _once(scene, group, queues, members, 3)
            with scene.java(group, topic, "--instance", "java-2") as another:
                members.append(another)
                _once(scene, group, queues, members, 4)
                first.shutdown()
                _once(scene, group, queues, members, 3)
            _once(scene, group, queues, members, 2)
        _once(scene, group, queues, members, 1)
    every = {place for member in members for place in member.places}
    assert every == {(queue.queue_id, offset) for queue in queues for offset in range(7 * _ROUND // _QUEUES)}


def _once(
    scene: Scene, group: str, queues: Sequence[MessageQueue], members: Sequence[Seen | JavaMember], count: int
) -> None:
    """Waits until so many members share the queues; what is sent then is got once, by whom the queue belongs to."""
    until(lambda: scene.is_shared(group, queues, count), f"{count} members share {len(queues)} queues")
    sent = {(sent.queue.queue_id, sent.queue_offset) for sent in scene.send(queues, [b"x"] * _ROUND)}

    def got() -> list[tuple[int, int]]:
        return [place for member in members for place in member.places if place in sent]

    until(lambda: set(got()) == sent, f"{count} members get all of {len(sent)} messages")
    assert len(got()) == len(sent), "no message came twice"
    owners = [len({queue for queue, _ in sent & set(member.places)}) for member in members]
    assert sum(owners) == len(queues), "each queue was consumed by one member"
    assert sum(map(bool, owners)) == count, "each member had a share"


PLAYS = (members_of_both_kinds_share_the_queues_while_they_come_and_go,)
