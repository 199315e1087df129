"""Queues shared out among members that come and go: every queue is somebody's in the end, and no message is lost.

Members rebalance when they do, not all at once; some end as they should, some by a crash. Nothing sleeps here: a step
is a member that rebalances, consumes, stores, comes or goes.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

import pytest

from rmqfast.client.consumer import ReadOffsetType, RemoteBrokerOffsetStore
from rmqfast.client.consumer.strategies import (
    AllocateMessageQueueAveragely,
    AllocateMessageQueueAveragelyByCircle,
    AllocateMessageQueueConsistentHash,
    AllocateMessageQueueSticky,
    AllocateMessageQueueStrategy,
)
from rmqfast.message import MessageQueue
from tests.client.consumer.doubles import FakeApi, FakeInstance, FakeProcessQueue, FakeRebalance

MESSAGES = 60
AT_ONCE = 8
STRATEGIES = (
    AllocateMessageQueueAveragely(),
    AllocateMessageQueueAveragelyByCircle(),
    AllocateMessageQueueConsistentHash(),
    AllocateMessageQueueSticky(),
)


class Broker(FakeApi):
    """Offsets and locks of one group, and who is in it."""

    def __init__(self) -> None:
        super().__init__()
        self.registered: list[str] = []
        self.stored: dict[MessageQueue, int] = {}
        self.locks: dict[MessageQueue, str] = {}

    def query_consumer_offset(self, address: str, group: str, queue: MessageQueue, *, timeout: float) -> int | None:
        return self.stored.get(queue)

    def update_consumer_offset(
        self, address: str, group: str, queue: MessageQueue, offset: int, *, oneway: bool, timeout: float
    ) -> None:
        self.stored[queue] = offset

    def lock_batch(
        self, address: str, group: str, client_id: str, queues: Iterable[MessageQueue], *, timeout: float
    ) -> set[MessageQueue]:
        return {queue for queue in queues if self.locks.setdefault(queue, client_id) == client_id}

    def unlock_batch(
        self, address: str, group: str, client_id: str, queues: Iterable[MessageQueue], *, oneway: bool, timeout: float
    ) -> None:
        for queue in queues:
            if self.locks.get(queue) == client_id:
                del self.locks[queue]

    def forgets(self, client_id: str) -> None:
        """Its connection is closed, and its locks have run out."""
        self.registered.remove(client_id)
        for queue in [queue for queue, owner in self.locks.items() if owner == client_id]:
            del self.locks[queue]


class Member(FakeRebalance):
    """A push consumer: takes queues, consumes a few messages now and then."""

    def __init__(
        self,
        name: str,
        broker: Broker,
        queues: list[MessageQueue],
        strategy: AllocateMessageQueueStrategy,
        *,
        is_ordered: bool,
    ) -> None:
        self.broker, self.is_ordered = broker, is_ordered
        instance = FakeInstance(name)
        instance.api = broker
        instance.find_consumer_ids = lambda topic, group: list(broker.registered)  # type: ignore[method-assign]
        super().__init__(instance, RemoteBrokerOffsetStore(instance.as_instance, "g"), strategy=strategy)
        self.subscribed(*queues)
        self.begin = self.stored
        broker.registered.append(name)

    def stored(self, queue: MessageQueue) -> int:
        return max(0, self.offset_store.read_offset(queue, ReadOffsetType.READ_FROM_STORE))

    def remove_unnecessary(self, queue: MessageQueue, process_queue: FakeProcessQueue) -> bool:
        super().remove_unnecessary(queue, process_queue)
        self.offset_store.persist(queue)
        self.offset_store.remove_offset(queue)
        if self.is_ordered:
            self.locks.unlock(queue)
        return True

    def rebalances(self) -> None:
        self.do_rebalance(is_ordered=self.is_ordered)
        if self.is_ordered:
            self.locks.lock_all()

    def persists(self) -> None:
        self.offset_store.persist_all(list(self.process_queues))

    def leaves(self) -> None:
        self.persists()
        if self.is_ordered:
            for queue in list(self.process_queues):
                self.locks.unlock(queue, oneway=False)
        self.drop_all()
        self.broker.forgets(self.instance.client_id)


class Group:
    """A group whose members come and go, step by step."""

    def __init__(self, seed: int, strategy: AllocateMessageQueueStrategy, *, is_ordered: bool) -> None:
        self.rng, self.strategy, self.is_ordered = random.Random(seed), strategy, is_ordered
        brokers = ("b", "broker-a", "broker-b")[: self.rng.randint(1, 3)]
        self.queues = sorted(
            MessageQueue("t", name, number) for name in brokers for number in range(self.rng.randint(1, 8))
        )
        self.broker, self.members, self.crashed = Broker(), dict[str, Member](), list[str]()
        self.consumed = {queue: list[tuple[str, int]]() for queue in self.queues}
        self.unstored, self.names = 0, 0
        self.comes()

    def comes(self) -> None:
        name = f"10.0.0.{self.rng.randrange(256)}@{self.names}"
        self.names += 1
        self.members[name] = Member(name, self.broker, self.queues, self.strategy, is_ordered=self.is_ordered)
        for member in self.members.values():
            member.instance.brokers = {queue.broker_name: {0: queue.broker_name} for queue in self.queues}  # type: ignore[attr-defined]

    def consumes(self, member: Member) -> None:
        """A few messages of each of its queues; an orderly one of those that it has locked."""
        for queue, process_queue in member.process_queues.items():
            if self.is_ordered and not process_queue.is_locked:
                continue
            if self.is_ordered:
                assert self.broker.locks[queue] == member.instance.client_id, "two members have one queue"
            first = member.offset_store.read_offset(queue, ReadOffsetType.READ_FROM_MEMORY)
            first = max(first, 0)
            end = min(MESSAGES, first + self.rng.randint(0, AT_ONCE))
            self.consumed[queue] += [(member.instance.client_id, offset) for offset in range(first, end)]
            member.offset_store.update_offset(queue, end, increase_only=True)

    def crashes(self, name: str) -> None:
        """It is gone; what it had not stored is consumed again, and the broker notices later."""
        member = self.members.pop(name)
        for queue in member.process_queues:
            read = member.offset_store.read_offset(queue, ReadOffsetType.READ_FROM_MEMORY)
            self.unstored += max(0, read - self.broker.stored.get(queue, 0))
        self.crashed.append(name)

    def step(self) -> None:
        member = self.rng.choice(list(self.members.values()))
        what = self.rng.random()
        if what < 0.4:
            member.rebalances()
        elif what < 0.75:
            self.consumes(member)
        elif what < 0.85:
            member.persists()
        elif what < 0.90 and len(self.members) < 8:
            self.comes()
        elif what < 0.94 and len(self.members) > 1:
            del self.members[member.instance.client_id]
            member.leaves()
        elif what < 0.97 and len(self.members) > 1:
            self.crashes(member.instance.client_id)
        elif self.crashed:
            self.broker.forgets(self.crashed.pop())

    def settles(self) -> None:
        """The broker has noticed everything, and all members have rebalanced twice: some give up before others take."""
        while self.crashed:
            self.broker.forgets(self.crashed.pop())
        for _ in range(2):
            for member in self.members.values():
                member.rebalances()

    def owners(self) -> dict[MessageQueue, list[str]]:
        return {
            queue: [name for name, member in self.members.items() if queue in member.process_queues]
            for queue in self.queues
        }

    def duplicates(self) -> int:
        return sum(len(of) - len({offset for _, offset in of}) for of in self.consumed.values())


@pytest.mark.parametrize("is_ordered", [False, True], ids=["concurrently", "orderly"])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: str(strategy.name))
@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(5, 12))])
def test_every_queue_has_one_owner_in_the_end_and_no_message_is_lost(
    seed: int, strategy: AllocateMessageQueueStrategy, is_ordered: bool
) -> None:
    group = Group(seed, strategy, is_ordered=is_ordered)
    for _ in range(150):
        group.step()
    group.settles()
    assert all(len(owners) == 1 for owners in group.owners().values()), group.owners()
    for _ in range(MESSAGES):
        for member in group.members.values():
            group.consumes(member)
    assert {queue: {offset for _, offset in of} for queue, of in group.consumed.items()} == {
        queue: set(range(MESSAGES)) for queue in group.queues
    }
    if is_ordered:
        assert group.duplicates() <= group.unstored, "only what a crashed member had not stored comes again"
        for of in group.consumed.values():
            steps = [later - earlier for (_, earlier), (_, later) in pairwise(of)]
            assert all(step <= 1 for step in steps), "no message is passed over, not even for a while"


@pytest.mark.parametrize("is_ordered", [False, True], ids=["concurrently", "orderly"])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: str(strategy.name))
def test_a_member_that_leaves_as_it_should_costs_no_more_than_what_was_not_stored_of_queues_that_move(
    strategy: AllocateMessageQueueStrategy, is_ordered: bool
) -> None:
    group, moved = Group(5, strategy, is_ordered=is_ordered), 0
    for _ in range(3):
        group.comes()
    group.settles()
    while len(group.members) > 1:
        for member in group.members.values():
            member.persists()
            group.consumes(member)
        member = group.members.pop(next(iter(group.members)))
        member.leaves()
        before = group.owners()
        group.settles()
        moved += sum(before[queue] not in ([], owners) for queue, owners in group.owners().items())
    for _ in range(MESSAGES):
        group.consumes(next(iter(group.members.values())))
    # who takes a queue without a lock asks where to begin before the other one has stored how far it is
    assert group.duplicates() <= (0 if is_ordered else AT_ONCE * moved)
    assert all({offset for _, offset in of} == set(range(MESSAGES)) for of in group.consumed.values())


def test_eight_queues_are_shared_out_as_members_come_and_go() -> None:
    queues = [MessageQueue("t", "b", number) for number in range(8)]
    broker, members = Broker(), dict[str, Member]()

    def sizes() -> list[int]:
        for _ in range(2):
            for member in members.values():
                member.rebalances()
        found = [len(member.process_queues) for member in members.values()]
        assert Counter(queue for member in members.values() for queue in member.process_queues) == Counter(queues)
        return found

    seen = []
    for name in ("c1", "c2", "c3"):
        members[name] = Member(name, broker, queues, AllocateMessageQueueAveragely(), is_ordered=False)
        seen.append(sizes())
    members.pop("c1").leaves()
    seen.append(sizes())
    assert seen == [[8], [4, 4], [3, 3, 2], [4, 4]]
