"""Pulls and offsets against a broker in this process."""

from __future__ import annotations

import queue
from collections.abc import Iterator

import pytest

import rmqfast
from rmqfast.client.consumer import ReadOffsetType, RemoteBrokerOffsetStore
from rmqfast.client.consumer.pull_api import PullApi, PullResult, PullStatus, PullSysFlag
from rmqfast.client.instance import ClientConfig, ClientInstance
from rmqfast.client.producer import Producer
from rmqfast.errors import ClientError, ResponseError, RmqError
from rmqfast.message import Message, MessageQueue
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from tests.waiting import PATIENCE

ALL = SubscriptionData(topic="pulled", sub_version=0)


@pytest.fixture(scope="module")
def instance() -> Iterator[ClientInstance]:
    with rmqfast.EmbeddedCluster() as cluster:
        config = ClientConfig(name_server=cluster.name_server, request_timeout=PATIENCE)
        with Producer("p", config=config) as producer:
            producer.create_topic("pulled", 1)
            (target,) = producer.fetch_publish_message_queues("pulled")
            for n in range(5):
                producer.send(Message("pulled", b"%d" % n, tags="A" if n % 2 else "B"), target, PATIENCE)
        instance = ClientInstance.of(config, config.with_pid_instance_name().client_id())
        instance.start()
        instance.update_route("pulled")
        yield instance
        instance.release()


@pytest.fixture
def target(instance: ClientInstance) -> MessageQueue:
    return MessageQueue("pulled", "broker-a", 0)


def test_a_pull_finds_what_is_there_and_says_where_to_go_on(instance: ClientInstance, target: MessageQueue) -> None:
    result = PullApi(instance, "g").pull(target, ALL, 1, 3)
    assert (result.status, result.next_begin_offset, result.min_offset, result.max_offset) == ("FOUND", 4, 0, 5)
    assert [(m.body, m.queue_offset, m.broker_name) for m in result.messages] == [
        (b"1", 1, "broker-a"),
        (b"2", 2, "broker-a"),
        (b"3", 3, "broker-a"),
    ]
    assert result.size == sum(m.store_size for m in result.messages)
    assert result.messages[0].property("MAX_OFFSET") == "5"


def test_tags_are_looked_at_here_once_more(instance: ClientInstance, target: MessageQueue) -> None:
    # the broker compares hashes and is told that of B, too
    wanted = SubscriptionData(topic="pulled", sub_string="A || B", tags_set=("A",), code_set=(65, 66), sub_version=0)
    result = PullApi(instance, "g").pull(target, wanted, 0, 32)
    assert [m.body for m in result.messages] == [b"1", b"3"]
    assert result.next_begin_offset == 5


@pytest.mark.parametrize(
    ("offset", "wanted", "status"),
    [
        (5, ALL, PullStatus.NO_NEW_MSG),
        (9, ALL, PullStatus.OFFSET_ILLEGAL),
        (0, SubscriptionData(topic="pulled", sub_string="C", sub_version=0), PullStatus.NO_MATCHED_MSG),
    ],
)
def test_a_pull_that_finds_nothing_says_why(
    instance: ClientInstance,
    target: MessageQueue,
    offset: int,
    wanted: SubscriptionData,
    status: PullStatus,
) -> None:
    result = PullApi(instance, "g").pull(target, wanted, offset, 32)
    assert (result.status, result.next_begin_offset, result.messages) == (status, 5, [])


def test_an_asynchronous_pull_tells_its_end_once(instance: ClientInstance, target: MessageQueue) -> None:
    ends: queue.SimpleQueue[PullResult | RmqError] = queue.SimpleQueue()
    api = PullApi(instance, "g")
    api.pull_async(target, ALL, 0, 32, ends.put, timeout=PATIENCE)
    api.pull_async(MessageQueue("pulled", "broker-a", 7), ALL, 0, 32, ends.put, timeout=PATIENCE)
    ended = [ends.get(timeout=PATIENCE) for _ in range(2)]
    first, second = sorted(ended, key=lambda end: isinstance(end, RmqError))
    assert isinstance(first, PullResult)
    assert len(first.messages) == 5
    assert isinstance(second, ResponseError)
    assert "queueId[7] is illegal" in str(second)
    assert "BROKER: 127.0.0.1:" in str(second)
    api.pull_async(target, ALL, 4, 32, ends.put, timeout=PATIENCE)
    third = ends.get(timeout=PATIENCE)
    assert isinstance(third, PullResult)
    assert third.next_begin_offset == 5, "neither of the others ended once more"
    assert len(third.messages) == 1


def test_a_refusal_is_the_brokers_error(instance: ClientInstance, target: MessageQueue) -> None:
    with pytest.raises(ResponseError, match="the consumer's group info not exist"):
        PullApi(instance, "nobody").pull(target, ALL, 0, 32, sys_flag=PullSysFlag(0))


def test_a_broker_that_nobody_knows_is_said_with_the_topic(instance: ClientInstance) -> None:
    with pytest.raises(ClientError, match=r"The broker\[elsewhere\] not exist\n.*route of topic pulled") as raised:
        PullApi(instance, "g").pull(MessageQueue("pulled", "elsewhere", 0), ALL, 0, 32)
    assert raised.value.response_code == 10003


def test_expressions_need_a_broker_that_answered_a_heartbeat(instance: ClientInstance, target: MessageQueue) -> None:
    sql = SubscriptionData(topic="pulled", sub_string="a > 1", expression_type="SQL92", sub_version=1)
    with pytest.raises(ClientError, match=r"The broker\[broker-a, 0\] does not upgrade to support"):
        PullApi(instance, "g").pull(target, sql, 0, 32)


def test_an_offset_that_was_stored_without_an_answer_is_read_next(
    instance: ClientInstance, target: MessageQueue
) -> None:
    store = RemoteBrokerOffsetStore(instance, "stores")
    for offset in range(100):
        store.update_offset(target, offset)
        store.persist(target)
        assert store.read_offset(target, ReadOffsetType.READ_FROM_STORE) == offset
