"""Locks of queues: whom they are asked of, and what an answer means for the queue."""

from __future__ import annotations

from typing import Any

import pytest

from rmqfast.client.consumer.queue_locks import QueueLocks
from rmqfast.errors import RemotingTimeoutError
from rmqfast.message import MessageQueue
from tests.client.consumer.doubles import FakeInstance, FakeProcessQueue

A0, A1, B0 = MessageQueue("t", "a", 0), MessageQueue("t", "a", 1), MessageQueue("t", "b", 0)


@pytest.fixture
def instance() -> FakeInstance:
    return FakeInstance(brokers={"a": {0: "a:0"}, "b": {0: "b:0", 1: "b:1"}})


@pytest.fixture
def process_queues() -> dict[MessageQueue, FakeProcessQueue]:
    return {queue: FakeProcessQueue() for queue in (A0, A1, B0)}


@pytest.fixture
def locks(instance: FakeInstance, process_queues: dict[MessageQueue, FakeProcessQueue]) -> QueueLocks:
    return QueueLocks(instance.as_instance, "g", process_queues)


Queues = dict[MessageQueue, FakeProcessQueue]


def test_all_locks_are_asked_for_broker_by_broker(
    instance: FakeInstance, locks: QueueLocks, process_queues: Queues
) -> None:
    process_queues[A0].is_locked = True
    instance.api.locked_by_others = {A0}
    locks.lock_all()
    assert [(row[1], row[4]) for row in instance.api.asked] == [
        ("a:0", frozenset([A0, A1])),
        ("b:0", frozenset([B0])),
    ]
    assert [process_queue.is_locked for process_queue in process_queues.values()] == [False, True, True]


def test_a_broker_that_does_not_answer_takes_no_lock_away(
    instance: FakeInstance, locks: QueueLocks, process_queues: Queues, caplog: pytest.LogCaptureFixture
) -> None:
    locks.lock_all()
    instance.api.lock_error = RemotingTimeoutError("t")
    locks.lock_all()
    assert not locks.lock(A0)
    locks.unlock(A0, oneway=False)
    assert all(process_queue.is_locked for process_queue in process_queues.values())
    assert "does not lock queues" in caplog.text
    assert "does not unlock queues" in caplog.text


def test_a_slave_locks_nothing(locks: QueueLocks, instance: FakeInstance, process_queues: Queues) -> None:
    del instance.brokers["b"][0]
    assert not locks.lock(B0)
    locks.lock_all()
    locks.unlock(B0)
    assert [row[1] for row in instance.api.asked] == ["a:0"]
    assert not process_queues[B0].is_locked


def test_what_is_given_up_is_unlocked_later_unless_it_is_locked_anew(instance: FakeInstance, locks: QueueLocks) -> None:
    for queue in (A0, A1, B0):
        locks.give_up(queue)
    locks.lock(A0)
    instance.api.asked.clear()
    locks.unlock_given_up(A0)
    assert instance.api.asked == []
    locks.unlock_given_up(B0)
    locks.unlock_given_up()
    locks.unlock_given_up()
    assert [(row[0], row[4], row[5]) for row in instance.api.asked] == [
        ("unlock", frozenset([B0]), True),
        ("unlock", frozenset([A1]), True),
    ]


def test_what_is_unlocked_while_all_locks_are_renewed_is_unlocked_again(
    instance: FakeInstance, locks: QueueLocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock_batch = instance.api.lock_batch

    def slow(address: str, *args: Any, **named: Any) -> set[MessageQueue]:
        if address == "a:0":  # a rebalance gives a queue up, before the broker sees this
            locks.unlock(A0)
        return lock_batch(address, *args, **named)

    monkeypatch.setattr(instance.api, "lock_batch", slow)
    locks.lock_all()
    asked = [(row[0], row[4]) for row in instance.api.asked]
    assert asked == [
        ("unlock", frozenset([A0])),
        ("lock", frozenset([A0, A1])),
        ("lock", frozenset([B0])),
        ("unlock", frozenset([A0])),
    ]
    monkeypatch.undo()
    instance.api.asked.clear()
    locks.lock_all()
    assert {row[4] for row in instance.api.asked} == {frozenset([A1]), frozenset([B0])}, "it is on its way out"
    assert locks.lock(A0)
    locks.lock_all()
    assert instance.api.asked[-2][4] == frozenset([A0, A1])
