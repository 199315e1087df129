"""Where a member begins in a queue: every `ConsumeFromWhere` with every answer of the offset store."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from rmqfast import EmbeddedCluster
from rmqfast.client.consumer import (
    NO_OFFSET,
    UNREACHABLE,
    ConsumeFromWhere,
    ReadOffsetType,
    RemoteBrokerOffsetStore,
    compute_pull_from_where,
    half_an_hour_ago,
    parse_consume_timestamp,
)
from rmqfast.client.instance import ClientConfig, ClientInstance
from rmqfast.errors import ArgumentError, RemotingTimeoutError
from rmqfast.message import MessageQueue
from tests.embedded.client import send

QUEUE, RETRY = MessageQueue("t", "b", 0), MessageQueue("%RETRY%g", "b", 0)
FIRST, TIMESTAMP = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, ConsumeFromWhere.CONSUME_FROM_TIMESTAMP
LAST = [where for where in ConsumeFromWhere if where not in {FIRST, TIMESTAMP}]
MAX, FOUND, ASKED_FOR = 100, 55, "20240229123456"


@pytest.fixture(params=["UTC", "Asia/Shanghai", "America/New_York"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A time zone of this process."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def begun(where: ConsumeFromWhere, queue: MessageQueue, stored: int) -> int:
    def search(searched: MessageQueue, timestamp: int) -> int:
        assert (searched, timestamp) == (queue, parse_consume_timestamp(ASKED_FOR))
        return FOUND

    return compute_pull_from_where(
        where, queue, stored, max_offset=lambda _: MAX, search_offset=search, consume_timestamp=ASKED_FOR
    )


@pytest.mark.parametrize("where", ConsumeFromWhere)
@pytest.mark.parametrize("queue", [QUEUE, RETRY])
@pytest.mark.parametrize("stored", [0, 70])
def test_a_stored_offset_counts_whatever_else_is_asked_for(
    where: ConsumeFromWhere, queue: MessageQueue, stored: int
) -> None:
    assert begun(where, queue, stored) == stored


@pytest.mark.parametrize("where", ConsumeFromWhere)
@pytest.mark.parametrize("queue", [QUEUE, RETRY])
def test_where_nobody_could_be_asked_nothing_is_begun(where: ConsumeFromWhere, queue: MessageQueue) -> None:
    assert begun(where, queue, UNREACHABLE) == -1


@pytest.mark.parametrize(
    ("where", "queue", "expected"),
    [
        *((where, QUEUE, MAX) for where in LAST),
        *((where, RETRY, 0) for where in LAST),
        (FIRST, QUEUE, 0),
        (FIRST, RETRY, 0),
        (TIMESTAMP, QUEUE, FOUND),
        (TIMESTAMP, RETRY, MAX),
    ],
)
def test_a_new_group_begins_where_it_is_told(where: ConsumeFromWhere, queue: MessageQueue, expected: int) -> None:
    assert begun(where, queue, NO_OFFSET) == expected


def test_the_deprecated_values_are_three_of_six() -> None:
    assert len(LAST) == 4
    assert [str(where) for where in ConsumeFromWhere] == [where.name for where in ConsumeFromWhere]


@pytest.mark.parametrize("where", [ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, TIMESTAMP])
def test_a_broker_that_does_not_answer_is_no_beginning(where: ConsumeFromWhere) -> None:
    def failing(*_: object) -> int:
        raise RemotingTimeoutError("no answer")

    with pytest.raises(RemotingTimeoutError):
        compute_pull_from_where(
            where, QUEUE, NO_OFFSET, max_offset=failing, search_offset=failing, consume_timestamp=ASKED_FOR
        )


def test_a_time_is_local(zone: str) -> None:
    hours = {"UTC": 0, "Asia/Shanghai": -8, "America/New_York": 5}[zone]
    assert parse_consume_timestamp("20240229123456") == (1_709_210_096 + hours * 3600) * 1000
    summer = {"UTC": 0, "Asia/Shanghai": -8, "America/New_York": 4}[zone]
    assert parse_consume_timestamp("20240701000000") == (1_719_792_000 + summer * 3600) * 1000
    assert os.environ["TZ"] == zone


@pytest.mark.parametrize(
    "text", ["", "x", "2024", "20241301000000", "2024-02-29 12:34", "20230229000000", "2024022912345"]
)
def test_what_is_no_time_is_said(text: str) -> None:
    with pytest.raises(
        ArgumentError, match="consumeTimestamp is invalid, the valid format is yyyyMMddHHmmss,but received"
    ):
        parse_consume_timestamp(text)


def test_the_default_is_half_an_hour_ago(zone: str) -> None:
    assert zone
    now = time.time()
    assert parse_consume_timestamp(half_an_hour_ago(now)) == int(now - 1800) * 1000
    assert parse_consume_timestamp(half_an_hour_ago()) == pytest.approx((now - 1800) * 1000, abs=5000)


def test_a_young_topic_begins_at_its_first_message_whatever_a_new_group_asks_for(
    rmqfast_cluster: EmbeddedCluster,
) -> None:
    """As a broker answers 0, not that there is none, where the first message is in memory."""
    broker = rmqfast_cluster.brokers[0]
    send(broker.address, "young", b"x")
    config = ClientConfig(name_server=rmqfast_cluster.name_server, instance_name="begins")
    instance = ClientInstance.of(config, config.client_id())
    try:
        assert instance.update_route("young")
        queue = MessageQueue("young", str(broker.config["brokerName"]), 0)
        store = RemoteBrokerOffsetStore(instance, "new")
        stored = store.read_offset(queue, ReadOffsetType.READ_FROM_STORE)
        assert [begun(where, queue, stored) for where in ConsumeFromWhere] == [0] * 6
        store.update_offset(queue, 1)
        store.update_to_broker(queue, 1, oneway=False)
        assert RemoteBrokerOffsetStore(instance, "new").read_offset(queue, ReadOffsetType.READ_FROM_STORE) == 1
        gone = MessageQueue("young", "no-such-broker", 0)
        assert begun(FIRST, gone, store.read_offset(gone, ReadOffsetType.READ_FROM_STORE)) == -1
    finally:
        instance.release()
