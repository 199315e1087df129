"""What brokers and name servers count never becomes work or memory of a driver without a bound."""

from __future__ import annotations

import json
import threading

import pytest

import rmqfast
from rmqfast._native import SparkStream, TopicRead
from rmqfast.errors import ArgumentError, ClientError, RmqError
from rmqfast.remoting import Processor, Request, RequestCode, Response, ResponseCode
from rmqfast.store import COLUMNS
from tests.spark.live.hostile_broker import hostile_broker

MOST = (2**63 - 1) // 20


def read(address: str, kind: str = "topic batch", **options: str) -> TopicRead:
    given = {"nameServer": address, "topic": "orders", "startingOffsets": "earliest"} | options
    return TopicRead(kind, given, COLUMNS)


@pytest.mark.parametrize(
    "stats",
    [
        f'"minOffset":0,"maxOffset":{2**63 - 1}',
        f'"minOffset":0,"maxOffset":{MOST + 1}',
        f'"minOffset":0,"maxOffset":{2**64}',
        '"minOffset":0,"maxOffset":1e30',
        '"minOffset":7,"maxOffset":3',
        '"minOffset":-1,"maxOffset":3',
        f'"minOffset":{-(2**63)},"maxOffset":{2**63 - 1}',
        '"minOffset":0,"maxOffset":[1]',
    ],
)
def test_offsets_that_no_queue_has_are_an_error(stats: str) -> None:
    with hostile_broker(stats) as address:
        with pytest.raises(ClientError, match=r"broker broker-a at .* cannot be asked: .*expected "):
            read(address).plan()
        stream = SparkStream.of_topic(read(address, "topic stream"))
        with pytest.raises(ClientError, match="expected "):
            stream.initial()
        stream.close()


@pytest.mark.parametrize("last", [MOST, 200_000_000_000])
def test_more_pieces_than_a_driver_plans_are_an_error(last: int) -> None:
    with hostile_broker(f'"minOffset":0,"maxOffset":{last},"lastUpdateTimestamp":5') as address:
        with pytest.raises(
            ArgumentError, match=rf"100000 pieces of a read at most, got \d+ .* offsets 0 to {last}; raise"
        ):
            read(address).plan()
        stream = SparkStream.of_topic(read(address, "topic stream"))
        start = stream.initial()
        with pytest.raises(ArgumentError, match="100000 pieces of a read at most"):
            stream.pieces(start, stream.latest(start, is_limited=False))
        stream.close()


def test_a_large_topic_is_planned_in_as_many_pieces_as_it_takes() -> None:
    with hostile_broker('"minOffset":0,"maxOffset":5000000') as address:
        assert len(read(address).plan()) == 5
        assert len(read(address, minPartitions="1000").plan()) == 1000
        assert len(read(address, maxRowsPerPartition="100").plan()) == 50_000


@pytest.mark.parametrize(
    ("name", "count"), [("readQueueNums", 2**31 - 1), ("readQueueNums", -1), ("readQueueNums", 2**40)]
)
def test_a_route_with_impossible_queues_is_an_error(name: str, count: int) -> None:
    data = {"brokerName": "broker-a", "perm": 6, "readQueueNums": 1, "writeQueueNums": 1, name: count}
    with (
        hostile_broker('"minOffset":0,"maxOffset":3', [data]) as address,
        pytest.raises(RmqError, match="readQueueNums: expected "),
    ):
        read(address).plan()


def test_a_route_of_many_brokers_with_many_queues_is_an_error_of_both_clients() -> None:
    data = [{"brokerName": f"b{n}", "perm": 6, "readQueueNums": 65_536, "writeQueueNums": 65_536} for n in range(2_000)]
    text = "expected 262144 queues of all brokers at most"
    with hostile_broker('"minOffset":0,"maxOffset":3', data) as address:
        with pytest.raises(RmqError, match=text):
            read(address).plan()
        with rmqfast.Admin(name_server=address) as admin, pytest.raises(RmqError, match=text):
            admin.topics.route("orders")


def route_of(queues: int) -> list[dict[str, object]]:
    return [{"brokerName": "broker-a", "perm": 6, "readQueueNums": queues, "writeQueueNums": 1}]


def bounds_by(offset: Processor) -> dict[int, Processor]:
    return {RequestCode.GET_MIN_OFFSET: offset, RequestCode.GET_MAX_OFFSET: offset}


def test_queues_that_a_broker_does_not_list_are_asked_for_at_once() -> None:
    both = threading.Barrier(2)

    def offset(request: Request) -> Response:
        if request.code == RequestCode.GET_MIN_OFFSET:
            both.wait(60)
        return Response(ext_fields={"offset": "5"})

    with hostile_broker('"minOffset":5,"maxOffset":5', route_of(3), bounds_by(offset)) as address:
        assert read(address).plan() == []
    assert not both.broken


def test_a_broker_that_refuses_is_not_asked_once_for_each_queue() -> None:
    asked: list[int] = []

    def offset(request: Request) -> Response:
        asked.append(request.code)
        return Response(ResponseCode.SYSTEM_ERROR, "no")

    with (
        hostile_broker('"minOffset":5,"maxOffset":5', route_of(65_536), bounds_by(offset)) as address,
        pytest.raises(ClientError, match=r"broker-a at .* cannot be asked: CODE: 1  DESC: no"),
    ):
        read(address).plan()
    assert len(asked) < 1000


def test_a_broker_that_keeps_silent_is_not_waited_for_once_for_each_queue() -> None:
    asked: list[int] = []
    is_over = threading.Event()

    def bounds(request: Request) -> Response:
        return Response(ext_fields={"offset": "5" if request.code == RequestCode.GET_MIN_OFFSET else "9"})

    def pull(request: Request) -> Response:
        asked.append(request.code)
        is_over.wait(60)
        return Response()

    queues = 300
    more = bounds_by(bounds) | {RequestCode.PULL_MESSAGE: pull}
    with hostile_broker('"minOffset":5,"maxOffset":9', route_of(queues), more) as address:
        stream = SparkStream.of_topic(read(address, "topic stream"))
        stored = " ".join(f"{number}:1" for number in range(queues))
        offsets = {str(number): 7 for number in range(queues)}
        start = json.dumps({"orders": {"broker-a": offsets, f"broker-a stored {stored}": {}}})
        # what cannot be looked at stays where it is
        assert json.loads(stream.latest(start, is_limited=True))["orders"]["broker-a"] == offsets
        stream.close()
        is_over.set()
    assert len(asked) < 100
