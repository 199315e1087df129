"""Members that come and go, half of them without a word, while messages are sent steadily."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence

from tests.effort import effort

from .member import GROUPS
from .processes import MemberProcess, Noted, Place, Sending, noted
from .scene import Scene, until

_QUEUES, _MEMBERS, _RATE = 16, range(2, 6), 300
_EVENTS = effort("RMQFAST_CHURN", 30, 500)
#: What a member may have taken of a queue and not told of: by a clean leave, and since its offsets were stored last.
_IN_FLIGHT, _UNSTORED_SECONDS = 32, 5
#: A queue in order whose member was killed stays locked for a minute; until it is tried again, others come and go.
_AFTERWARDS = 180.0


def nothing_is_lost_while_members_come_and_go_or_are_killed(scene: Scene) -> None:
    topic = "churned"
    queues = scene.topic(topic, _QUEUES)
    chance, members, gone = random.Random(7), list[MemberProcess](), list[MemberProcess]()
    killed = 0

    def join() -> None:
        name = f"member-{len(members) + len(gone)}"
        members.append(MemberProcess(scene.name_server, topic, scene.directory / name, name))
        members[-1].ready()

    try:
        with Sending(scene.producer, queues, _RATE) as sending:
            for event in range(_EVENTS):
                if len(members) < _MEMBERS.start or (len(members) < _MEMBERS.stop and chance.random() < 0.5):
                    join()
                else:
                    gone.append(members.pop(chance.randrange(len(members))))
                    killed += event % 2
                    gone[-1].kill() if event % 2 else gone[-1].leave()
                time.sleep(chance.random())
        files = [member.file for member in (*gone, *members)]
        sent = sending.acknowledged
        assert not sending.failures
        until(lambda: all(_done(noted(files), group) >= sent for group in GROUPS), "all is consumed", _AFTERWARDS, 1)
    finally:
        for member in members:
            member.kill()
    for group in GROUPS:
        mine = [each for each in noted(files) if each.group == group]
        again = Counter(each.place for each in mine if each.what == "begin").total() - len(sent)
        moved = _EVENTS * _QUEUES
        bound = moved * _IN_FLIGHT + killed * _UNSTORED_SECONDS * _RATE
        assert 0 <= again <= min(bound, len(sent) // 2), f"{group}: {again} duplicates of {len(sent)}"
    assert overlaps([each for each in noted(files) if each.group == "in_order"]) == []


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


def _done(rows: Sequence[Noted], group: str) -> set[Place]:
    return {each.place for each in rows if each.what == "end" and each.group == group}


PLAYS = (nothing_is_lost_while_members_come_and_go_or_are_killed,)
