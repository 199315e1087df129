"""Who is online, as clients and administrators ask for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmqfast.remoting.fastjson import decode

from .client_control import Control
from .client_doubles import Line, client, request


@pytest.fixture
def control(tmp_path: Path) -> Control:
    return Control(tmp_path)


def test_a_group_that_is_not_online_has_no_connections(control: Control) -> None:
    answer = control.answer(request(203, consumerGroup="g"))
    assert (answer.code, answer.remark) == (206, "the consumer group[g] not online")


def test_the_connections_of_a_producer_group(control: Control) -> None:
    control.producers.register(client(Line("192.0.2.7:40001"), "a"), "p")
    answer = control.answer(request(204, producerGroup="p"))
    assert decode(answer.body) == {
        "connectionSet": [{"clientAddr": "192.0.2.7:40001", "clientId": "a", "language": "JAVA", "version": 401}]
    }


def test_a_producer_group_that_is_not_online_is_an_error(control: Control) -> None:
    answer = control.answer(request(204, producerGroup="p"))
    assert (answer.code, answer.remark) == (1, "the producer group[p] not exist")


def test_all_producers(control: Control) -> None:
    assert control.answer(request(328)).body == b'{"data":{}}'
    control.producers.register(client(Line("1.1.1.1:22"), "c", now=1), "g")
    assert control.answer(request(328)).body == (
        b'{"data":{"g":[{"clientId":"c","language":"JAVA","lastUpdateTimestamp":1,"remoteIP":"/1.1.1.1:22","version":401}]}}'
    )
