"""Which queues a member takes and gives up, and what becomes of them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from rmqfast.client.consumer import PullRequest, RemoteBrokerOffsetStore
from rmqfast.client.consumer.rebalance import java_order
from rmqfast.errors import RemotingTimeoutError
from rmqfast.message import MessageQueue
from tests.client.consumer.doubles import FakeInstance, FakeProcessQueue, FakeRebalance

Q = [MessageQueue("t", "b", number) for number in range(8)]
RETRY = MessageQueue("%RETRY%g", "b", 0)
OTHER = MessageQueue("u", "b", 0)


@pytest.fixture
def instance() -> FakeInstance:
    return FakeInstance()


def rebalance_of(instance: FakeInstance, **settings: Any) -> FakeRebalance:
    return FakeRebalance(instance, RemoteBrokerOffsetStore(instance.as_instance, "g"), **settings)


@pytest.fixture
def rebalance(instance: FakeInstance) -> FakeRebalance:
    """That of a consumer that wants a topic with these queues."""
    made = rebalance_of(instance)
    made.subscribed(*Q)
    return made


def dispatched(rebalance: FakeRebalance) -> list[MessageQueue]:
    """The queues of the last dispatch."""
    return [request.queue for request in rebalance.dispatched[-1]]


def test_a_member_alone_gets_all_queues_and_begins_where_it_is_told(rebalance: FakeRebalance) -> None:
    rebalance.begin = lambda queue: queue.queue_id * 10
    rebalance.do_rebalance()
    assert rebalance.dispatched == [
        [PullRequest(queue, rebalance.process_queues[queue], queue.queue_id * 10) for queue in Q]
    ]
    assert rebalance.changes == [("t", frozenset(Q), frozenset(Q))]
    assert rebalance.removed == []


def test_a_queue_that_must_be_kept_stays_dropped_until_it_may_go(
    instance: FakeInstance, rebalance: FakeRebalance
) -> None:
    rebalance.do_rebalance()
    instance.members = ["c1", "c2"]
    rebalance.may_remove = False
    rebalance.do_rebalance()
    assert sorted(rebalance.process_queues) == Q
    assert [rebalance.process_queues[queue].is_dropped for queue in Q] == [False] * 4 + [True] * 4
    assert len(rebalance.changes) == 1, "nothing was given up"
    rebalance.may_remove = True
    rebalance.do_rebalance()
    assert sorted(rebalance.process_queues) == Q[:4]
    assert len(rebalance.changes) == 2


def test_a_queue_that_nobody_pulls_for_is_taken_anew(rebalance: FakeRebalance) -> None:
    rebalance.do_rebalance()
    stuck = rebalance.process_queues[Q[3]]
    stuck.is_expired = True
    rebalance.do_rebalance()
    assert stuck.is_dropped
    assert rebalance.removed == [Q[3]]
    assert dispatched(rebalance) == [Q[3]]
    assert rebalance.process_queues[Q[3]] is not stuck
    assert len(rebalance.changes) == 2


def test_a_queue_that_is_stuck_and_must_be_kept_is_not_taken_anew(rebalance: FakeRebalance) -> None:
    rebalance.do_rebalance()
    stuck = rebalance.process_queues[Q[3]]
    stuck.is_expired, rebalance.may_remove = True, False
    rebalance.do_rebalance()
    assert stuck.is_dropped
    assert rebalance.process_queues[Q[3]] is stuck
    assert dispatched(rebalance) == []


def test_what_was_known_of_a_queue_is_forgotten_before_it_is_asked_where_to_begin(
    instance: FakeInstance, rebalance: FakeRebalance
) -> None:
    store = rebalance.offset_store
    store.update_offset(Q[0], 99)
    store.update_offset(OTHER, 5)
    rebalance.begin = lambda queue: store.clone().get(queue, 0)
    rebalance.do_rebalance()
    assert rebalance.dispatched[0][0].next_offset == 0
    assert store.clone() == {OTHER: 5}


@pytest.mark.parametrize("failure", [RemotingTimeoutError("t"), ValueError("v"), -1, -2])
def test_a_queue_that_cannot_be_begun_waits_for_the_next_time(
    rebalance: FakeRebalance, failure: Exception | int
) -> None:
    def begin(queue: MessageQueue) -> int:
        if queue == Q[3]:
            if isinstance(failure, Exception):
                raise failure
            return failure
        return 0

    rebalance.begin = begin
    rebalance.do_rebalance()
    others = [queue for queue in Q if queue != Q[3]]
    assert dispatched(rebalance) == others
    assert sorted(rebalance.process_queues) == others
    rebalance.do_rebalance()
    assert len(rebalance.changes) == 1
    rebalance.begin = lambda _: 4
    rebalance.do_rebalance()
    assert [(request.queue, request.next_offset) for request in rebalance.dispatched[-1]] == [(Q[3], 4)]


def test_a_queue_that_was_taken_meanwhile_is_not_taken_twice(rebalance: FakeRebalance) -> None:
    meanwhile = FakeProcessQueue()

    def begin(queue: MessageQueue) -> int:
        rebalance.process_queues[queue] = meanwhile
        return 0

    rebalance.subscribed(Q[0])
    rebalance.begin = begin
    rebalance.do_rebalance()
    assert rebalance.process_queues == {Q[0]: meanwhile}
    assert dispatched(rebalance) == []


def test_who_consumes_in_order_takes_only_what_it_has_locked(instance: FakeInstance, rebalance: FakeRebalance) -> None:
    instance.api.locked_by_others = {Q[1], Q[2]}
    rebalance.offset_store.update_offset(Q[1], 7)
    rebalance.do_rebalance(is_ordered=True)
    assert dispatched(rebalance) == [Q[0], *Q[3:]]
    assert rebalance.offset_store.clone() == {Q[1]: 7}, "nothing is forgotten of what is not taken"
    assert instance.api.asked[0] == ("lock", "b:0", "g", "c1", frozenset([Q[0]]), 1.0)
    instance.api.locked_by_others = set()
    rebalance.do_rebalance(is_ordered=True)
    assert dispatched(rebalance) == [Q[1], Q[2]]
    assert len([row for row in instance.api.asked if row[0] == "lock"]) == 10, "what it has is not locked again"


@pytest.mark.parametrize("message_model", ["CLUSTERING", "BROADCASTING"])
def test_a_topic_without_a_route_keeps_what_there_is(
    instance: FakeInstance, message_model: Any, caplog: pytest.LogCaptureFixture
) -> None:
    rebalance = rebalance_of(instance, message_model=message_model)
    rebalance.subscribed(*Q, RETRY)
    rebalance.do_rebalance()
    before = dict(rebalance.process_queues)
    rebalance.subscribe_info.clear()
    instance.members = None
    rebalance.do_rebalance()
    assert rebalance.process_queues == before
    assert "topic t has no route" in caplog.text
    assert "topic %RETRY%g has no route" not in caplog.text, "that is made when the first heartbeat comes"
    assert len(caplog.records) == 1, "one warning, though nobody can tell the members either"


def test_who_does_not_know_the_members_keeps_what_it_has(
    instance: FakeInstance, rebalance: FakeRebalance, caplog: pytest.LogCaptureFixture
) -> None:
    rebalance.do_rebalance()
    instance.members = None
    rebalance.do_rebalance()
    assert sorted(rebalance.process_queues) == Q
    assert "nobody can tell who is in the group" in caplog.text


class Failing:
    """A strategy that fails for one topic, and gives nothing at all for another."""

    name = "MINE"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        if queues[0].topic == "t":
            raise ZeroDivisionError
        if queues[0].topic == "u":
            return None  # type: ignore[return-value]
        return list(queues)


def test_a_strategy_that_fails_is_named_and_its_topic_keeps_what_it_has(
    instance: FakeInstance, caplog: pytest.LogCaptureFixture
) -> None:
    rebalance = rebalance_of(instance, strategy=Failing())
    rebalance.subscribed(*Q, OTHER, RETRY)
    kept, given_up = FakeProcessQueue(), FakeProcessQueue()
    rebalance.process_queues |= {Q[0]: kept, OTHER: given_up}
    with caplog.at_level(logging.ERROR):
        rebalance.do_rebalance()
    assert rebalance.process_queues[Q[0]] is kept
    assert not kept.is_dropped
    assert OTHER not in rebalance.process_queues, "nothing is an empty share"
    assert RETRY in rebalance.process_queues
    assert "topic t: the strategy MINE fails" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_a_topic_that_fails_does_not_keep_others_from_it(
    rebalance: FakeRebalance, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rebalance.subscribed(Q[0], OTHER)

    def failing(topic: str, *_: object) -> None:
        if topic == "t":
            raise ZeroDivisionError

    monkeypatch.setattr(rebalance, "message_queue_changed", failing)
    rebalance.do_rebalance()
    assert sorted(rebalance.process_queues) == [Q[0], OTHER]
    assert "topic t could not be rebalanced" in caplog.text


def test_a_queue_that_comes_after_the_end_is_not_taken(rebalance: FakeRebalance) -> None:

    def begin(queue: MessageQueue) -> int:
        if queue == Q[1]:
            rebalance.drop_all()
        return 0

    rebalance.begin = begin
    rebalance.do_rebalance()
    assert rebalance.process_queues == {}
    assert [request.queue for request in rebalance.dispatched[0] if not request.process_queue.is_dropped] == []


def test_members_stand_in_the_order_of_java(instance: FakeInstance, rebalance: FakeRebalance) -> None:
    instance.client_id = "\U0001f600"
    instance.members = ["\uffff", "\U0001f600"]
    rebalance.subscribed(*Q[:2])
    rebalance.do_rebalance()
    assert list(rebalance.process_queues) == [Q[0]]
    assert sorted(["a@9", "a@10", "B"], key=java_order) == ["B", "a@10", "a@9"]
