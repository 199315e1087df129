"""Members that come and go, half of them without a word, while messages are sent steadily."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from tests.effort import effort

from .member import GROUPS
from .notes import Noted, Notes
from .processes import MEMBER, MemberProcess, Sending
from .scene import Scene, until

_QUEUES, _MEMBERS = 16, range(2, 6)
_EVENTS, _RATE = effort("RMQFAST_CHURN", 30, 500), effort("RMQFAST_CHURN_RATE", 300, 5_000)
#: What a member may have taken of a queue and not told of: by a clean leave, and since its offsets were stored last.
_IN_FLIGHT, _UNSTORED_SECONDS = 32, 5
#: A queue in order whose member was killed stays locked for a minute; until it is tried again, others come and go.
_AFTERWARDS = effort("RMQFAST_CHURN_AFTERWARDS", 180, 900)


def nothing_is_lost_while_members_come_and_go_or_are_killed(scene: Scene) -> None:
    topic = "churned"
    queues = scene.topic(topic, _QUEUES)
    chance, members, gone = random.Random(7), list[MemberProcess](), list[MemberProcess]()
    killed = 0

    def join() -> None:
        name = f"member-{len(members) + len(gone)}"
        members.append(MemberProcess(MEMBER, file := scene.directory / name, scene.name_server, topic, file, name))
        members[-1].wait_ready()

    try:
        with Sending(scene.producer, queues, _RATE) as sending:
            for _ in range(_EVENTS):
                if len(members) < _MEMBERS.start or (len(members) < _MEMBERS.stop and chance.random() < 0.5):
                    join()
                else:
                    is_killed = len(gone) % 2 == 1
                    gone.append(members.pop(chance.randrange(len(members))))
                    killed += is_killed
                    gone[-1].kill() if is_killed else gone[-1].leave()
                time.sleep(chance.random())  # noqa: TID251 - members come and go at random moments
        files = [member.file for member in (*gone, *members)]
        sent = sending.acknowledged
        assert not sending.failures
        notes = Notes()
        until(lambda: all(done >= sent for done in notes.read(files).done.values()), "all is consumed", _AFTERWARDS, 1)
    finally:
        for member in members:
            member.kill()
    for group in GROUPS:
        again = notes.begun[group] - len(sent)
        moved = _EVENTS * _QUEUES
        bound = moved * _IN_FLIGHT + killed * _UNSTORED_SECONDS * _RATE
        assert 0 <= again <= min(bound, len(sent) // 2), f"{group}: {again} duplicates of {len(sent)}"
        print(f"{len(sent)} messages, {_EVENTS} came or went, {killed} killed; {group}: {again} came again")  # noqa: T201 - figures
    assert overlaps(notes.kept) == []


def overlaps(of_group: Sequence[Noted]) -> list[tuple[Noted, Noted]]:
    """Who began with a message of a queue while another member was at work with one of the same queue.

    A member that was killed says nothing of it: what it began with last is taken as ended when it was noted.
    """
    last = {each.member: each for each in of_group}
    working: dict[int, Noted] = {}
    found = []
    for each in of_group:
        queue, other = each.place[0], working.get(each.place[0])
        if each.what == "end":
            if other is not None and other.member == each.member:
                del working[queue]
            continue
        if other is not None and other.member != each.member and last[other.member].time > each.time:
            found.append((other, each))
        working[queue] = each
    return found


PLAYS = (nothing_is_lost_while_members_come_and_go_or_are_killed,)
