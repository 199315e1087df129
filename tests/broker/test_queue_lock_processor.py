"""LOCK_BATCH_MQ and UNLOCK_BATCH_MQ."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmqfast.broker.clients.queue_locks import MAX_QUEUES
from rmqfast.message import MessageQueue
from rmqfast.remoting import Response
from rmqfast.remoting.fastjson import encode

from .client_control import Control
from .client_doubles import request

Q0, Q1 = MessageQueue("t", "broker-a", 0), MessageQueue("t", "broker-a", 1)


def _body(client_id: str, *queues: MessageQueue) -> bytes:
    return encode({"clientId": client_id, "consumerGroup": "g", "mqSet": list(queues)})


def test_a_client_gets_what_nobody_has_for_60_seconds(tmp_path: Path) -> None:
    control = Control(tmp_path)
    answer = control.answer(request(41, body=_body("one", Q0)))
    assert answer == Response(body=b'{"lockOKMQSet":[{"brokerName":"broker-a","queueId":0,"topic":"t"}]}')
    assert control.answer(request(41, body=_body("two", Q0, Q1))).body == encode({"lockOKMQSet": [Q1]})
    control.time += 60_001
    assert control.answer(request(41, body=_body("two", Q0, Q1))).body == encode({"lockOKMQSet": [Q0, Q1]})


def test_a_client_gives_back_what_it_has(tmp_path: Path) -> None:
    control = Control(tmp_path)
    control.answer(request(41, body=_body("one", Q0, Q1)))
    assert control.answer(request(42, body=_body("one", Q0))) == Response()
    assert control.answer(request(41, body=_body("two", Q0, Q1))).body == encode({"lockOKMQSet": [Q0]})


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
def test_what_is_wrong_is_told(tmp_path: Path, code: int, body: bytes, remark: str) -> None:
    control = Control(tmp_path)
    answer = control.answer(request(code, body=body))
    assert answer.code == 1
    assert (answer.remark or "").startswith(remark)
    assert control.locks.holder("g", Q0) is None
