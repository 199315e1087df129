"""Clients while a test stops or moves the clock: what they wait for goes by another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import Any

import pytest
import time_machine
from freezegun import freeze_time

import rmqfast
from rmqfast import EmbeddedCluster, Message, RmqError
from rmqfast.client.lite_pull import LitePullOptions
from tests.waiting import PATIENCE

THEN = datetime(2020, 1, 1, tzinfo=UTC)
FIRST = rmqfast.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
STOPS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "freezegun": lambda: freeze_time(THEN),
    "time-machine": lambda: time_machine.travel(THEN, tick=False),
}


@pytest.fixture(params=STOPS)
def stop(request: pytest.FixtureRequest) -> Callable[[], AbstractContextManager[Any]]:
    return STOPS[request.param]


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as cluster:
        yield cluster


def test_a_push_consumer_that_runs_goes_on_hearing(
    cluster: EmbeddedCluster, stop: Callable[[], AbstractContextManager[Any]]
) -> None:
    seen: SimpleQueue[bytes] = SimpleQueue()

    def listen(messages: Any, _context: Any) -> Any:
        for message in messages:
            seen.put(message.body)
        return rmqfast.ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    with rmqfast.Producer("shop", name_server=cluster.name_server) as producer:
        consumer = rmqfast.PushConsumer("g", name_server=cluster.name_server, consume_from_where=FIRST)
        consumer.subscribe("orders")
        consumer.subscribe("made-meanwhile")
        consumer.register_message_listener(listen)
        with stop(), consumer:
            producer.send(Message("orders", b"meanwhile"))
            # its route comes by a timer
            producer.send(Message("made-meanwhile", b"new"))
            assert {seen.get(timeout=PATIENCE) for _ in range(2)} == {b"meanwhile", b"new"}


def test_polls_and_sends_end_at_their_timeouts(
    cluster: EmbeddedCluster, stop: Callable[[], AbstractContextManager[Any]]
) -> None:
    options = LitePullOptions(consume_from_where=FIRST)
    with stop(), rmqfast.Producer("shop", name_server=cluster.name_server) as producer:
        producer.send(Message("orders", b"x"))
        with rmqfast.LitePullConsumer("g", name_server=cluster.name_server, options=options) as consumer:
            consumer.subscribe("orders")
            assert [message.body for message in consumer.poll(PATIENCE)] == [b"x"]
            assert consumer.poll(0.2) == []
        with pytest.raises(RmqError, match="timeout"):
            producer.request(Message("orders", b"nobody replies"), timeout=0.3)
        cluster.brokers[0].stop()
        with pytest.raises(RmqError):
            producer.send(Message("orders", b"y"), timeout=1.0)
