"""Filters of a mebibyte at a broker: they find what they should, and others do not wait for them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rmqfast.broker import Broker
from rmqfast.broker.clients import consumer_filter_manager
from rmqfast.remoting import RemotingClient, RequestCode, Response, ResponseCode
from tests.attack.filters import filter_of, pull, subscribe
from tests.broker.pulled import body_of, records_of
from tests.embedded.client import broker_config
from tests.interop.rocketmq import create_topic
from tests.waiting import PATIENCE

SUSPEND, SUBSCRIPTION = 2, 4


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(broker_config(tmp_path, enablePropertyFilter="true")) as broker:
        create_topic(broker.address, "filtered", 1)
        yield broker


def client_of(broker: Broker) -> RemotingClient:
    return RemotingClient(broker.address, timeout=PATIENCE)


def sent(client: RemotingClient, value: str, body: bytes) -> None:
    fields = {"a": "g", "b": "filtered", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "0", "h": "0"}
    fields |= {"i": f"a\1{value}\2", "j": "0", "k": "false"}
    assert client.request(RequestCode.SEND_MESSAGE_V2, fields, body).code == ResponseCode.SUCCESS


def pulled(client: RemotingClient, offset: int, *, suspend: int = 0, expression: str | None = None) -> Response:
    flag = (SUSPEND if suspend else 0) | (0 if expression is None else SUBSCRIPTION)
    fields = {
        "consumerGroup": "g", "topic": "filtered", "queueId": "0", "queueOffset": str(offset), "maxMsgNums": "32",
        "sysFlag": str(flag), "commitOffset": "0", "suspendTimeoutMillis": str(suspend), "subVersion": "1",
        "subscription": expression or "", "expressionType": "SQL92",
    }  # fmt: skip
    return client.request(RequestCode.PULL_MESSAGE, fields)


def found_by(client: RemotingClient, end: int, expression: str | None = None) -> tuple[list[bytes], int]:
    """The bodies that a consumer gets which pulls up to an offset, and how many pulls it takes."""
    bodies: list[bytes] = []
    offset = pulls = 0
    while offset < end:
        answer = pulled(client, offset, expression=expression)
        assert answer.code in {ResponseCode.SUCCESS, ResponseCode.PULL_RETRY_IMMEDIATELY}, answer
        bodies += map(body_of, records_of(answer.body))
        following = int((answer.ext_fields or {})["nextBeginOffset"])
        assert following > offset
        offset, pulls = following, pulls + 1
    return bodies, pulls


@pytest.mark.parametrize("size", [1 << 10, 1 << 16, 1 << 20])
@pytest.mark.parametrize("comes_with_pulls", [False, True])
def test_a_filter_finds_each_message_however_large_it_is(broker: Broker, size: int, *, comes_with_pulls: bool) -> None:
    expression = filter_of(size)
    last = expression.rsplit("'", 2)[1]
    with client_of(broker) as client:
        for number in range(30):
            sent(client, last if number % 7 == 3 else "none", str(number).encode())
        assert subscribe(client, "g", expression) == ResponseCode.SUCCESS
        bodies, pulls = found_by(client, 30, expression if comes_with_pulls else None)
    assert bodies == [b"3", b"10", b"17", b"24"]
    # a pull ends when its filter has cost enough
    assert (pulls > 5) == (size == 1 << 20)


def test_large_properties_count_for_what_a_filter_may_cost(broker: Broker) -> None:
    with client_of(broker) as client:
        for _ in range(30):
            sent(client, "x" * 32_000, b"x")
        assert subscribe(client, "g", " OR ".join(["a = 'b'"] * 100 + ["a IS NOT NULL"])) == ResponseCode.SUCCESS
        bodies, pulls = found_by(client, 30)
    assert bodies == [b"x"] * 30
    assert pulls > 1


def test_a_pull_by_a_large_filter_waits_for_a_message(broker: Broker) -> None:
    expression = filter_of(1 << 20)
    with client_of(broker) as client, client_of(broker) as producer:
        assert subscribe(client, "g", expression) == ResponseCode.SUCCESS
        fields = pull(client, "g", 0)
        assert fields["maxOffset"] == "0"
        for number, value in enumerate(["none", "0"]):
            with client_of(broker) as waiting, ThreadPoolExecutor(1) as pool:
                asked = pool.submit(pulled, waiting, number, suspend=30_000)
                sent(producer, value, b"x")
                answer = asked.result(PATIENCE)
            # by now it knows whether the message is one for it
            assert (answer.code, (answer.ext_fields or {})["nextBeginOffset"]) == (
                ResponseCode.SUCCESS if value == "0" else ResponseCode.PULL_RETRY_IMMEDIATELY,
                str(number + 1),
            )


def test_expressions_beyond_what_a_broker_keeps_are_refused_until_there_is_room(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_filter_manager, "MAX_EXPRESSIONS", 3000)
    with client_of(broker) as first, client_of(broker) as second:
        assert subscribe(first, "g1", filter_of(2000)) == ResponseCode.SUCCESS
        assert subscribe(first, "g1", filter_of(2000)) == ResponseCode.SUCCESS
        assert subscribe(second, "g2", filter_of(2000)) == ResponseCode.SYSTEM_ERROR
        first.ask(RequestCode.UNREGISTER_CLIENT, {"clientID": "g1", "consumerGroup": "g1"})
        assert subscribe(second, "g2", filter_of(2000)) == ResponseCode.SUCCESS


def test_a_list_of_more_than_a_mebibyte_is_taken_as_by_a_real_broker(broker: Broker) -> None:
    names = ", ".join(f"'{number}'" for number in range(250_000))
    with client_of(broker) as client:
        for value in ("249999", "none"):
            sent(client, value, value.encode())
        assert subscribe(client, "g", f"a IN ({names})") == ResponseCode.SUCCESS
        assert found_by(client, 2)[0] == [b"249999"]
