"""Traces of our clients as mqadmin prints them, those of Java's as we read them, on RocketMQ's brokers and ours."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from rmqfast import Message
from rmqfast.admin import Admin, TraceType, TraceView
from rmqfast.client.producer import MessageType, Producer, TransactionProducer
from rmqfast.client.push import ConsumeConcurrentlyStatus, PushConsumer
from tests.broker.interop.cluster import SCENARIO, Cluster
from tests.broker.interop.mqadmin import Admin as MqAdmin
from tests.client.producer.transactions import Bank
from tests.client.push.listening import Seen
from tests.interop.rocketmq import java
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.soak, pytest.mark.timeout(600)]

BROKER_PROPERTIES = (*SCENARIO, "traceTopicEnable=true")
PUB, BEFORE, AFTER, END = TraceType
#: The release of Java's clients.
JAVA = "4.9.4"
#: Of a first send, to a broker that has just started.
SLOW = 20.0
SUCCESS, LATER = ConsumeConcurrentlyStatus.CONSUME_SUCCESS, ConsumeConcurrentlyStatus.RECONSUME_LATER


@pytest.fixture(scope="module")
def admin(each_cluster: Cluster) -> Iterator[Admin]:
    with Admin(name_server=each_cluster.name_server, timeout=20) as started:
        yield started


def steps(admin: Admin, message_id: str, count: int) -> list[TraceView]:
    """The steps of a message, once there are so many."""

    def found() -> list[TraceView]:
        views = admin.messages.trace(message_id)
        return views if len(views) >= count else []

    views: list[TraceView] = until(found)
    assert len(views) == count, views
    return views


def printed(text: str, kind: str) -> list[list[str]]:
    """What mqadmin prints of steps of a kind: group, host, date, time, cost, status."""
    return [words[1:] for line in text.splitlines() if (words := line.split()) and words[0] == kind]


def when(view: TraceView) -> list[str]:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(view.timestamp / 1000)).split()


def row_of(view: TraceView) -> list[str]:
    return [str(view.group), view.client_host, *when(view), f"{view.cost_time}ms", str(view.status)]


def test_mqadmin_prints_the_steps_of_our_clients(each_cluster: Cluster, admin: Admin, mqadmin: MqAdmin) -> None:
    seen = Seen(lambda messages, _: SUCCESS if messages[0].reconsume_times else LATER)
    with Producer("ours", name_server=each_cluster.name_server, enable_msg_trace=True) as producer:
        sent = producer.send(Message("ours", b"x" * 100, tags="t", keys="k1 k2"), timeout=SLOW)
        consumer = PushConsumer(
            "ours_g",
            name_server=each_cluster.name_server,
            enable_msg_trace=True,
            consume_from_where="CONSUME_FROM_FIRST_OFFSET",
            await_termination_millis_when_shutdown=60_000,
        )
        consumer.subscribe("ours")
        consumer.register_message_listener(seen)
        with consumer:
            seen.wait(2)
    views = steps(admin, sent.msg_id, 5)
    assert [view.trace_type for view in views] == [PUB, BEFORE, AFTER, BEFORE, AFTER]
    assert [view.status for view in views] == ["success", None, "failed", None, "success"]
    text = mqadmin(["queryMsgTraceById", "-i", sent.msg_id])
    assert printed(text, "Pub") == [row_of(views[0])]
    assert sorted(printed(text, "Sub")) == sorted(row_of(view) for view in views if view.trace_type is AFTER)


def test_the_steps_of_java_clients_are_read(each_cluster: Cluster, admin: Admin, mqadmin: MqAdmin) -> None:
    to = ("--namesrv", each_cluster.name_server, "--topic", "theirs", "--trace", "--linger-ms", 1500)
    words = ("--group", "java", "--count", 2, "--tags", "A", "--keys", "k{i}")
    lines = java(JAVA, "Produce", *to, *words, heap="-Xmx256m").splitlines()
    first, second = (json.loads(line) for line in lines)
    java(
        JAVA,
        "Consume",
        *("--mode", "push", "--namesrv", each_cluster.name_server, "--topic", "theirs", "--group", "java_g", "--trace"),
        *("--idle-ms", 4000),  # what Java has told its dispatcher in the last half second is lost at its end
        heap="-Xmx256m",
    )
    views = steps(admin, first["msgId"], 3)
    assert [(view.trace_type, view.group) for view in views] == [(PUB, "java"), (BEFORE, "java_g"), (AFTER, "java_g")]
    pub, before, after = views
    assert (pub.topic, pub.tags, pub.keys, pub.status) == ("theirs", "A", "k0", "success")
    assert (pub.offset_msg_id, pub.store_host) == (first["offsetMsgId"], each_cluster.broker)
    assert (before.request_id, before.retry_times) == (after.request_id, 0)
    assert {view.keys for view in steps(admin, second["msgId"], 3)} == {"k1"}
    text = mqadmin(["queryMsgTraceById", "-i", first["msgId"]])
    assert printed(text, "Pub") == [row_of(pub)]
    assert printed(text, "Sub") == [row_of(after)]


def own_steps(admin: Admin, message_id: str) -> list[TraceView]:
    """A transaction's steps, but for those that a broker asked for."""

    def found() -> list[TraceView]:
        views = [view for view in admin.messages.trace(message_id) if not view.from_transaction_check]
        return views if len(views) >= 2 else []

    views: list[TraceView] = until(found)
    return views


def test_a_transaction_has_the_same_steps_from_both(each_cluster: Cluster, admin: Admin) -> None:
    with TransactionProducer(
        "java_tx", Bank(), name_server=each_cluster.name_server, enable_msg_trace=True
    ) as producer:
        sent = producer.send_in_transaction(Message("money", b"1", tags="A", keys="k"), timeout=SLOW).send_result
    to = ("--namesrv", each_cluster.name_server, "--topic", "money", "--trace", "--linger-ms", 1500, "--size", 1)
    words = ("--group", "java", "--tx", "commit", "--tags", "A", "--keys", "k")
    theirs = json.loads(java(JAVA, "Produce", *to, *words, heap="-Xmx256m").splitlines()[0])
    found = [own_steps(admin, message_id) for message_id in (sent.msg_id, theirs["msgId"])]
    for message_id, (half, end) in zip((sent.msg_id, theirs["msgId"]), found, strict=True):
        assert (half.trace_type, half.message_type) == (PUB, MessageType.TRANSACTION_HALF)
        assert (end.trace_type, end.transaction_state, end.from_transaction_check) == (END, "COMMIT_MESSAGE", False)
        assert end.transaction_id == message_id
    for name in ("group", "topic", "tags", "keys", "store_host", "region_id", "message_type", "status", "body_length"):
        assert len({getattr(half, name) for half, _ in found}) == 1, name
        assert len({getattr(end, name) for _, end in found}) == 1, name
