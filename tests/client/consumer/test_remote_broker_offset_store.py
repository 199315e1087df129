"""Offsets that brokers keep: what is asked of whom, and what an answer, or none, means."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from rmqfast.client.consumer import UNREACHABLE, ReadOffsetType, RemoteBrokerOffsetStore
from rmqfast.errors import ClientError, RemotingConnectError, RemotingTimeoutError, ResponseError
from rmqfast.message import MessageQueue
from tests.client.consumer.doubles import FakeInstance
from tests.waiting import PATIENCE

STORE, MEMORY = ReadOffsetType.READ_FROM_STORE, ReadOffsetType.READ_FROM_MEMORY
FIRST = ReadOffsetType.MEMORY_FIRST_THEN_STORE
Q0, Q1, Q2 = (MessageQueue("t", "b", number) for number in range(3))


@pytest.fixture
def instance() -> FakeInstance:
    return FakeInstance()


@pytest.fixture
def store(instance: FakeInstance) -> RemoteBrokerOffsetStore:
    return RemoteBrokerOffsetStore(instance.as_instance, "g")


@pytest.mark.parametrize("kind", [STORE, FIRST])
def test_what_the_broker_says_is_in_memory_from_then_on(
    instance: FakeInstance, store: RemoteBrokerOffsetStore, kind: ReadOffsetType
) -> None:
    instance.api.offsets[Q0] = 7
    assert store.read_offset(Q0, kind) == 7
    assert store.read_offset(Q0, MEMORY) == 7
    assert instance.api.asked == [("query", "b:0", "g", Q0, 5.0)]


def test_the_broker_is_believed_where_it_is_asked_although_it_is_behind(
    instance: FakeInstance, store: RemoteBrokerOffsetStore
) -> None:
    store.update_offset(Q0, 9)
    instance.api.offsets[Q0] = 7
    assert store.read_offset(Q0, STORE) == store.read_offset(Q0, MEMORY) == 7


@pytest.mark.parametrize("answer", [RemotingTimeoutError("t"), RemotingConnectError("c"), ResponseError(2, "busy")])
def test_a_broker_that_does_not_tell_is_unreachable(
    instance: FakeInstance, store: RemoteBrokerOffsetStore, answer: Exception
) -> None:
    instance.api.offsets[Q0] = answer
    assert store.read_offset(Q0, STORE) == UNREACHABLE
    assert store.clone() == {}


def test_a_broker_that_nobody_knows_is_unreachable_after_the_route_was_asked_for_once(
    instance: FakeInstance, store: RemoteBrokerOffsetStore
) -> None:
    assert store.read_offset(MessageQueue("t", "gone", 0), STORE) == UNREACHABLE
    assert instance.updated == ["t"]
    with pytest.raises(ClientError, match=r"The broker\[gone\] not exist"):
        store.update_to_broker(MessageQueue("t", "gone", 0), 1)


def test_the_route_may_know_a_broker_that_was_unknown(instance: FakeInstance, store: RemoteBrokerOffsetStore) -> None:
    queue = MessageQueue("t", "new", 0)
    instance.on_update_route = lambda: instance.brokers.update(new={0: "new:0"})
    instance.api.offsets[queue] = 3
    assert store.read_offset(queue, STORE) == 3


def test_a_slave_is_asked_only_where_the_route_has_no_master_either(store: RemoteBrokerOffsetStore) -> None:
    instance = FakeInstance(brokers={"b": {1: "b:1"}})
    store = RemoteBrokerOffsetStore(instance.as_instance, "g")
    instance.api.offsets[Q0] = 3
    assert store.read_offset(Q0, STORE) == 3
    assert instance.updated == ["t"]
    assert instance.api.asked == [("query", "b:1", "g", Q0, 5.0)]
    instance.on_update_route = lambda: instance.brokers.update(b={0: "b:0", 1: "b:1"})
    store.read_offset(Q0, STORE)
    assert instance.api.asked[-1] == ("query", "b:0", "g", Q0, 5.0)


def test_all_are_stored_without_waiting_and_queues_of_others_forgotten(
    instance: FakeInstance, store: RemoteBrokerOffsetStore
) -> None:
    for queue, offset in ((Q0, 1), (Q1, 2), (Q2, 3)):
        store.update_offset(queue, offset)
    store.persist_all([Q0, Q1, MessageQueue("t", "b", 9)])
    assert instance.api.asked == [("update", "b:0", "g", Q0, 1, True, 5.0), ("update", "b:0", "g", Q1, 2, True, 5.0)]
    assert store.clone() == {Q0: 1, Q1: 2}
    store.persist_all(iter([Q0]))
    assert len(instance.api.asked) == 3, "what has not changed is stored, too"
    assert store.clone() == {Q0: 1}


def test_what_is_noted_while_all_are_stored_is_neither_forgotten_nor_followed_by_what_was_before(
    instance: FakeInstance, store: RemoteBrokerOffsetStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for queue, offset in ((Q0, 1), (Q1, 2), (Q2, 3)):
        store.update_offset(queue, offset)
    update = instance.api.update_consumer_offset

    def slow(*args: Any, **named: Any) -> None:
        if not instance.api.asked:  # listeners go on meanwhile, with a queue that this member has just got, too
            store.update_offset(Q1, 20)
            store.update_offset(Q2, 30)
        update(*args, **named)

    monkeypatch.setattr(instance.api, "update_consumer_offset", slow)
    store.persist_all([Q0, Q1])
    assert [row[3:5] for row in instance.api.asked] == [(Q0, 1), (Q1, 20)]
    assert store.clone() == {Q0: 1, Q1: 20, Q2: 30}


@pytest.mark.parametrize("error", [RemotingConnectError("x"), ClientError("x")])
def test_a_broker_that_takes_no_offset_does_not_keep_others_from_getting_theirs(
    instance: FakeInstance, store: RemoteBrokerOffsetStore, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    gone = MessageQueue("t", "gone", 0)
    store.update_offset(gone, 1)
    store.update_offset(Q0, 2)
    instance.api.update_error = error
    store.persist_all([gone, Q0])
    assert [row[3] for row in instance.api.asked] == [Q0]
    assert caplog.text.count("does not get the offset") == 2
    assert store.clone() == {gone: 1, Q0: 2}


class Interrupted(dict[MessageQueue, int]):
    """Offsets between the look at which and the change of which another thread comes."""

    def __init__(self, other: threading.Thread) -> None:
        super().__init__()
        self.other = other

    def get(self, *key: Any) -> Any:
        found = super().get(*key)
        if not self.other.is_alive() and self.other.ident is None:
            self.other.start()
            self.other.join(0.1)  # unless it must wait
        return found


def test_an_offset_does_not_shrink_although_two_threads_raise_it_at_once(store: RemoteBrokerOffsetStore) -> None:
    other = threading.Thread(target=lambda: store.update_offset(Q0, 20, increase_only=True))
    store._offsets = Interrupted(other)  # noqa: SLF001 - the other thread comes between two lines
    store.update_offset(Q0, 10, increase_only=True)
    other.join(PATIENCE)
    assert store.read_offset(Q0, MEMORY) == 20
