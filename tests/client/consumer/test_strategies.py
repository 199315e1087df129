"""Shares of queues: as the classes of 4.9.4 give them, and what each strategy promises whoever is in the group."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmqfast.client.consumer.strategies import (
    AllocateMachineRoomNearby,
    AllocateMessageQueueAveragely,
    AllocateMessageQueueAveragelyByCircle,
    AllocateMessageQueueByConfig,
    AllocateMessageQueueByMachineRoom,
    AllocateMessageQueueConsistentHash,
    AllocateMessageQueueSticky,
    AllocateMessageQueueStrategy,
)
from rmqfast.errors import ArgumentError
from rmqfast.message import MessageQueue
from tests.interop.rocketmq import java

GOLDEN = Path(__file__).parents[2] / "golden" / "client" / "allocate-4.9.4.jsonl.gz"
NAMES = ("AVG", "AVG_BY_CIRCLE", "CONFIG", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY-AVG", "CONSISTENT_HASH")


def room_of(name: str) -> str | None:
    room, at, _ = name.partition("@")
    return room if at else None


NEARBY = AllocateMachineRoomNearby(AllocateMessageQueueAveragely(), lambda queue: room_of(queue.broker_name), room_of)


def strategy_of(name: str, queues: Sequence[MessageQueue], row: dict[str, Any]) -> AllocateMessageQueueStrategy:
    """As `Allocate.java` makes them."""
    match name:
        case "AVG":
            return AllocateMessageQueueAveragely()
        case "AVG_BY_CIRCLE":
            return AllocateMessageQueueAveragelyByCircle()
        case "CONFIG":
            return AllocateMessageQueueByConfig(tuple(queues[: len(queues) // 2]))
        case "MACHINE_ROOM":
            return AllocateMessageQueueByMachineRoom(frozenset(row["rooms"]))
        case "CONSISTENT_HASH":
            return AllocateMessageQueueConsistentHash(row["virtualNodes"])
    return NEARBY


def shares_of(name: str, row: dict[str, Any]) -> list[list[int] | str]:
    """The shares of a recorded row, as they are worked out here."""
    queues = [MessageQueue(*queue) for queue in row["queues"]]
    members = row["members"]

    def share(member: str) -> list[int] | str:
        try:
            strategy = strategy_of(name, queues, row)
            assert strategy.name == name
            return [queues.index(queue) for queue in strategy.allocate("g", member, queues, members)]
        except ArgumentError as error:
            return str(error)

    return [share(member) for member in [*dict.fromkeys(members), "nobody", ""]]


@cache
def recorded() -> list[dict[str, Any]]:
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    assert len(rows) == 2000
    return rows


#: These rows are of all kinds; the tests that take long look at all there are.
ROWS = pytest.mark.parametrize(
    "part", [slice(4, None, 8), pytest.param(slice(None), marks=pytest.mark.long)], ids=["some", "all"]
)


@ROWS
@pytest.mark.parametrize("name", NAMES)
def test_shares_and_errors_are_those_of_4_9_4(name: str, part: slice) -> None:
    for row in recorded()[part]:
        assert shares_of(name, row) == row["shares"][name], row


@pytest.mark.long
@pytest.mark.timeout(300)
def test_java_gives_the_same_shares_of_other_random_groups() -> None:
    printed = java("4.9.4", "Allocate", 99, 500)
    asked = [json.loads(line[line.index("{") :]) for line in printed.splitlines() if "{" in line]
    assert len(asked) == 500
    for row in asked:
        for name in NAMES:
            assert shares_of(name, row) == row["shares"][name], row


QUEUES = st.lists(
    st.builds(MessageQueue, st.just("t"), st.sampled_from(["a", "b", "east@c", "west@d"]), st.integers(0, 15)),
    min_size=1,
    max_size=40,
    unique=True,
).map(sorted)
MEMBERS = st.lists(
    st.builds("{}@10.0.0.{}#{}".format, st.sampled_from(["east", "west"]), st.integers(0, 9), st.integers(0, 99)),
    min_size=1,
    max_size=12,
    unique=True,
).map(sorted)
IN_ROOMS = QUEUES.map(lambda queues: [queue for queue in queues if "@" in queue.broker_name]).filter(bool)
EVEN = (AllocateMessageQueueAveragely(), AllocateMessageQueueAveragelyByCircle(), AllocateMessageQueueSticky())


def shares(
    strategy: AllocateMessageQueueStrategy, queues: Sequence[MessageQueue], members: Sequence[str]
) -> dict[str, list[MessageQueue]]:
    return {member: strategy.allocate("g", member, queues, members) for member in members}


def owners(
    strategy: AllocateMessageQueueStrategy, queues: Sequence[MessageQueue], members: Sequence[str]
) -> dict[MessageQueue, str]:
    """Whose each queue is; a queue of two or of nobody fails."""
    found = shares(strategy, queues, members)
    assert sorted(queue for mine in found.values() for queue in mine) == list(queues)
    return {queue: member for member, mine in found.items() for queue in mine}


@given(queues=IN_ROOMS, members=MEMBERS)
@settings(max_examples=40)
def test_each_queue_has_one_owner_who_is_in_its_room_if_anybody_is(
    queues: list[MessageQueue], members: list[str]
) -> None:
    rooms = {room_of(member) for member in members}
    for queue, owner in owners(NEARBY, queues, members).items():
        room = room_of(queue.broker_name)
        assert room_of(owner) == room or room not in rooms


@pytest.mark.parametrize("strategy", EVEN, ids=lambda s: str(s.name))
@given(queues=QUEUES, members=MEMBERS)
@settings(max_examples=40)
def test_each_queue_has_one_owner_and_shares_differ_by_one_queue_at_most(
    strategy: AllocateMessageQueueStrategy, queues: list[MessageQueue], members: list[str]
) -> None:
    owned = Counter(owners(strategy, queues, members).values())
    sizes = [owned[member] for member in members]
    assert max(sizes) - min(sizes) <= 1


@given(queues=QUEUES, members=MEMBERS, leaver=st.integers(0, 11))
@settings(max_examples=40)
def test_by_consistent_hash_each_queue_has_one_owner_and_only_those_of_who_leaves_move(
    queues: list[MessageQueue], members: list[str], leaver: int
) -> None:
    gone = members[leaver % len(members)]
    left = [member for member in members if member != gone]
    before = owners(AllocateMessageQueueConsistentHash(), queues, members)
    after = owners(AllocateMessageQueueConsistentHash(), queues, left) if left else {}
    assert all(after[queue] == owner for queue, owner in before.items() if owner != gone and left)


@given(queues=QUEUES, members=MEMBERS)
@settings(max_examples=40)
def test_a_sticky_member_who_is_there_twice_leaves_no_queue_to_nobody(
    queues: list[MessageQueue], members: list[str]
) -> None:
    found = {m: AllocateMessageQueueSticky().allocate("g", m, queues, [members[0], *members]) for m in members}
    assert sorted(queue for mine in found.values() for queue in mine) == queues


def test_fewer_queues_move_with_sticky_than_with_averages_when_a_member_leaves() -> None:
    queues = sorted(MessageQueue("t", broker, number) for broker in ("a", "b", "c", "d") for number in range(16))
    members = sorted(f"10.0.0.{number}@77" for number in range(8))

    def moved(strategy: AllocateMessageQueueStrategy) -> float:
        """How many queues of those who stay change hands, on average of who leaves; eight of them must move anyway."""
        before, total = owners(strategy, queues, members), 0
        for gone in members:
            after = owners(strategy, queues, [member for member in members if member != gone])
            total += sum(after[queue] != owner for queue, owner in before.items() if owner != gone)
        return total / len(members)

    sticky, averages = moved(AllocateMessageQueueSticky()), moved(AllocateMessageQueueAveragely())
    assert sticky < 8 < averages
    assert moved(AllocateMessageQueueConsistentHash()) == 0


def test_sticky_shares_do_not_depend_on_the_order_in_which_members_are_named() -> None:
    queues = [MessageQueue("t", "b", number) for number in range(10)]
    share = AllocateMessageQueueSticky().allocate
    assert share("g", "b", queues, ["a", "b", "c"]) == share("g", "b", queues, ["c", "b", "a"])


def test_a_hash_of_ones_own_decides_where_on_the_ring_members_and_queues_are() -> None:
    queues = [MessageQueue("t", "b", number) for number in range(4)]
    places = {"a-0": 10, "c-0": 20} | {
        f"MessageQueue [topic=t, brokerName=b, queueId={number}]": place
        for number, place in enumerate((10, 11, 20, 21))
    }
    ring = AllocateMessageQueueConsistentHash(1, places.__getitem__)
    assert [[q.queue_id for q in ring.allocate("g", m, queues, ["a", "c"])] for m in ("a", "c")] == [[0, 3], [1, 2]]
