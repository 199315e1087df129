"""LOCK_BATCH_MQ and UNLOCK_BATCH_MQ: locks of queues that are consumed in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmqfast.broker.clients.queue_locks import MAX_QUEUES
from rmqfast.message import MessageQueue
from rmqfast.remoting import Response
from rmqfast.remoting.fastjson import decode, encode

from .client_control import Control
from .client_doubles import request

Q0, Q1 = MessageQueue("t", "broker-a", 0), MessageQueue("t", "broker-a", 1)


@pytest.fixture
def control(tmp_path: Path) -> Control:
    return Control(tmp_path)


def _body(client_id: str, *queues: MessageQueue, group: str = "g") -> bytes:
    return encode({"clientId": client_id, "consumerGroup": group, "mqSet": list(queues)})


def lock(control: Control, client_id: str, *queues: MessageQueue, group: str = "g", after: int = 0) -> list[int]:
    """The ids of the queues that a client gets, so many milliseconds later."""
    control.time += after
    answer = control.answer(request(41, body=_body(client_id, *queues, group=group)))
    return [queue["queueId"] for queue in decode(answer.body)["lockOKMQSet"]]


def unlock(control: Control, client_id: str, *queues: MessageQueue, group: str = "g") -> None:
    assert control.answer(request(42, body=_body(client_id, *queues, group=group))) == Response()


def test_the_answer_names_the_queues_that_a_client_has(control: Control) -> None:
    answer = control.answer(request(41, body=_body("one", Q0)))
    assert answer == Response(body=b'{"lockOKMQSet":[{"brokerName":"broker-a","queueId":0,"topic":"t"}]}')


@pytest.mark.parametrize(
    ("asks", "after", "gets"),
    [
        ("owner", 0, True),
        ("owner", 60_000, True),
        ("owner", 10_000_000, True),
        ("other", 0, False),
        ("other", 60_000, False),
        ("other", 60_001, True),
    ],
)
def test_a_lock_holds_for_60_seconds(control: Control, asks: str, after: int, gets: bool) -> None:
    assert lock(control, "owner", Q0) == [0]
    control.locks.scan(control.time + after)  # forgets nothing that holds
    assert lock(control, asks, Q0, after=after) == ([0] if gets else [])


def test_expired_locks_are_forgotten(control: Control) -> None:
    lock(control, "owner", Q0)
    lock(control, "owner", Q1, after=1)
    assert control.locks.scan(control.time + 60_000) == 1
    assert control.locks.scan(control.time + 60_001) == 1
    assert control.locks.scan(control.time + 60_001) == 0


def test_asking_again_makes_it_hold_longer(control: Control) -> None:
    lock(control, "owner", Q0)
    lock(control, "owner", Q0, after=50_000)
    assert lock(control, "other", Q0, after=60_000) == []
    assert lock(control, "other", Q0, after=1) == [0]


def test_who_asks_in_vain_does_not_make_it_hold_longer(control: Control) -> None:
    lock(control, "owner", Q0)
    lock(control, "other", Q0, after=50_000)
    assert lock(control, "other", Q0, after=10_001) == [0]


def test_some_of_the_queues_may_be_given(control: Control) -> None:
    lock(control, "owner", Q0)
    assert lock(control, "other", Q0, Q1) == [1]


def test_groups_do_not_know_each_others_locks(control: Control) -> None:
    lock(control, "owner", Q0)
    assert lock(control, "other", Q0, group="h") == [0]


def test_only_the_owner_unlocks(control: Control) -> None:
    lock(control, "owner", Q0, Q1)
    unlock(control, "other", Q0)
    assert lock(control, "other", Q0) == []
    unlock(control, "owner", Q0)
    assert lock(control, "other", Q0, Q1) == [0]
    unlock(control, "owner", Q0, group="h")


@pytest.mark.parametrize("code", [41, 42])
@pytest.mark.parametrize(
    ("body", "remark"),
    [
        (b"", "body: expected an object, got nothing"),
        (b'{"consumerGroup":"g"}', "body.clientId: expected a text, got nothing"),
        (b'{"clientId":"c","consumerGroup":"../g"}', "the specified group[../g] contains illegal characters"),
        (_body("c", MessageQueue("../t", "b", 0)), "the specified topic[../t] contains illegal characters"),
        (_body("c", *[Q0] * (MAX_QUEUES + 1)), "body.mqSet: expected at most 10000 items, got 10001"),
    ],
)
def test_what_is_wrong_is_told(control: Control, code: int, body: bytes, remark: str) -> None:
    answer = control.answer(request(code, body=body))
    assert answer.code == 1
    assert (answer.remark or "").startswith(remark)
    assert lock(control, "other", Q0) == [0]
