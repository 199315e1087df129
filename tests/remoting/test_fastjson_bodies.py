"""Bodies are read as RocketMQ's classes read them, however a client writes its numbers, texts, enums and names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rmqfast.broker.clients.queue_locks import QueuesOfClient
from rmqfast.broker.topics.subscription_group_processor import group_of
from rmqfast.errors import ResponseError
from rmqfast.remoting.protocol.heartbeat_data import HeartbeatData
from rmqfast.remoting.protocol.json_object import JsonObject
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from tests.remoting import fastjson_bodies

NOW = 7
REFUSED = "refused"


def _consumer(body: bytes) -> Any:
    heartbeat = HeartbeatData.of_body(b'{"clientID":"c","consumerDataSet":[%b]}' % body, now=NOW)
    [consumer] = heartbeat.consumers
    return replace(consumer, subscriptions=tuple(map(_unordered, consumer.subscriptions)))


def _unordered(subscription: SubscriptionData) -> Any:
    return replace(subscription, tags_set=(), code_set=()), set(subscription.tags_set), set(subscription.code_set)


READERS: dict[str, Callable[[bytes], Any]] = {
    "HeartbeatData": lambda body: HeartbeatData.of_body(body, now=NOW),
    "ConsumerData": _consumer,
    "SubscriptionData": lambda body: _unordered(SubscriptionData.from_json(JsonObject.of_body(body), now=NOW)),
    "LockBatchRequestBody": QueuesOfClient.of_body,
    "SubscriptionGroupConfig": group_of,
}


def _read(reader: Callable[[bytes], Any], body: str) -> Any:
    try:
        return reader(body.encode())
    except ResponseError:
        return REFUSED


@pytest.mark.parametrize("name", READERS)
def test_a_body_says_what_it_says_to_the_class_of_rocketmq(name: str) -> None:
    rows = [row for row in fastjson_bodies.recorded() if row["class"] == name]
    for row in rows:
        again = row.get("again")
        read = _read(READERS[name], row["body"])
        assert read == (REFUSED if again is None else _read(READERS[name], again)), row
    assert sum("again" in row for row in rows) > len(rows) / 4
