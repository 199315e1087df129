"""What traces tell of messages, on brokers in this process."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from rmqfast import EmbeddedCluster, Message
from rmqfast.admin import Admin, TraceType, TraceView
from rmqfast.client.instance import ClientConfig
from rmqfast.client.lite_pull import ConsumeFromWhere, LitePullConsumer, LitePullOptions
from rmqfast.client.producer import LocalTransactionState, MessageType, Producer, SendResult, TransactionProducer
from rmqfast.client.push import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus
from rmqfast.client.trace import TRACE_TOPIC, ConsumeReturnType
from rmqfast.errors import ResponseError
from tests.cli.command_line import run
from tests.client.producer.transactions import Bank
from tests.client.push.listening import Seen, consumer
from tests.torn import send_torn
from tests.waiting import PATIENCE, until

PUB, BEFORE, AFTER, END = TraceType
SUCCESS, LATER = ConsumeConcurrentlyStatus.CONSUME_SUCCESS, ConsumeConcurrentlyStatus.RECONSUME_LATER
#: What is to come once more comes at once, and nobody is asked about transactions while a test runs.
CONFIG = {"traceTopicEnable": "true", "messageDelayLevel": "0s " * 18, "transactionCheckInterval": "86400000"}


@pytest.fixture(scope="module", autouse=True)
def _soon() -> Iterator[None]:
    """Traces are sent at once; that they wait half a second for others is a test of the dispatcher."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rmqfast.client.trace.dispatcher._LONGEST_WAIT", 0.0)
        yield


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(config=CONFIG) as running:
        yield running


@pytest.fixture(scope="module")
def admin(cluster: EmbeddedCluster) -> Iterator[Admin]:
    with Admin(name_server=cluster.name_server) as running:
        yield running


@pytest.fixture(scope="module")
def producer(cluster: EmbeddedCluster) -> Iterator[Producer]:
    with Producer("traced", name_server=cluster.name_server, enable_msg_trace=True) as running:
        yield running


def traces(admin: Admin, message_id: str, count: int, **more: Any) -> list[TraceView]:
    """So many steps, once they are stored."""
    found: list[TraceView] = []

    def are_there() -> bool:
        found[:] = admin.messages.trace(message_id, **more)
        return len(found) >= count

    until(are_there, lambda: found)
    assert len(found) == count, found
    return found


def test_the_broker_has_a_topic_for_traces_with_one_queue(admin: Admin) -> None:
    assert [(row.queue_id, row.broker_name) for row in admin.topics.status(TRACE_TOPIC)] == [(0, "broker-a")]


def test_sends_are_told_once_they_are_stored(cluster: EmbeddedCluster, producer: Producer, admin: Admin) -> None:
    before = int(time.time() * 1000)
    sent = producer.send(Message("pubs", b"x" * 5000, tags="größe", keys=["k1", "k2"]))
    plain = producer.send_async(Message("pubs", b"y", delay_level=2)).result(PATIENCE)
    producer.send_oneway(Message("pubs", b"z", keys="oneway"))
    behind = producer.send(Message("pubs", b"behind it"))
    (view,) = traces(admin, sent.msg_id, 1)
    assert (view.trace_type, view.group, view.topic, view.tags) == (PUB, "traced", "pubs", "größe")
    assert (view.keys, view.store_host, view.offset_msg_id) == ("k1 k2", cluster.brokers[0].address, sent.offset_msg_id)
    assert (view.status, view.region_id, view.message_type) == ("success", "DefaultRegion", MessageType.NORMAL)
    assert view.body_length is not None, "bytes as they are sent: compressed"
    assert 0 < view.body_length < 100
    assert view.cost_time is not None
    assert before <= view.timestamp <= view.timestamp + view.cost_time <= int(time.time() * 1000)
    (other,) = traces(admin, plain.msg_id, 1)
    assert (other.message_type, other.tags, other.keys) == (MessageType.DELAY, None, None)
    traces(admin, behind.msg_id, 1)
    assert admin.messages.by_key(TRACE_TOPIC, "oneway") == [], "nobody knows whether it is stored"
    assert admin.messages.by_key(TRACE_TOPIC, "k2"), "keys of the message are keys of its trace"


def test_of_a_batch_each_message_is_found(producer: Producer, admin: Admin) -> None:
    messages = [Message("batches", b"%d" % number, keys=f"k{number}") for number in range(3)]
    sent = producer.send_batch(messages)
    (many,) = producer.send_many(messages)
    for result in (sent, many):
        for message_id in [*result.msg_id.split(","), result.msg_id]:
            (view,) = traces(admin, message_id, 1)
            assert (view.message_id, view.topic, view.keys) == (message_id, "batches", None)
            assert view.offset_msg_id == result.offset_msg_id


def test_a_trace_whose_body_does_not_decompress_is_left_out_and_logged(
    cluster: EmbeddedCluster, producer: Producer, admin: Admin, caplog: pytest.LogCaptureFixture
) -> None:
    sent = producer.send(Message("torn", b"x"))
    traces(admin, sent.msg_id, 1)
    send_torn(cluster.brokers[0].address, TRACE_TOPIC, {"KEYS": sent.msg_id})
    until(lambda: len(admin.messages.by_key(TRACE_TOPIC, sent.msg_id)) == 2)
    caplog.clear()
    (view,) = traces(admin, sent.msg_id, 1)
    assert view.topic == "torn"
    assert f"a trace of message {sent.msg_id} is left out: body of the message" in caplog.text


def test_each_time_that_a_message_is_consumed_is_told(
    cluster: EmbeddedCluster, producer: Producer, admin: Admin
) -> None:
    def answer(messages: Any, _: Any) -> Any:
        began = time.time()
        until(lambda: time.time() > began + 0.002)
        if messages[0].reconsume_times == 1:
            raise ValueError
        return SUCCESS if messages[0].reconsume_times else LATER

    seen = Seen(answer)
    sent = producer.send(Message("retried", b"x", keys="k"))
    with consumer(cluster, "retries", seen, "retried", enable_msg_trace=True):
        seen.wait(3)
    views = traces(admin, sent.msg_id, 7)
    assert [view.trace_type for view in views] == [PUB, BEFORE, AFTER, BEFORE, AFTER, BEFORE, AFTER]
    assert {view.group for view in views[1:]} == {"retries"}
    assert {view.keys for view in views} == {"k"}
    befores, afters = views[1::2], views[2::2]
    assert [view.retry_times for view in befores] == [0, 1, 2]
    assert [view.request_id for view in befores] == [view.request_id for view in afters]
    assert [view.status for view in afters] == ["failed", "failed", "success"]
    kinds = [ConsumeReturnType.FAILED, ConsumeReturnType.EXCEPTION, ConsumeReturnType.SUCCESS]
    assert [view.return_type for view in afters] == kinds
    assert all(view.cost_time is not None and view.cost_time >= 1 for view in afters)


def test_in_order_and_several_at_once(cluster: EmbeddedCluster, producer: Producer, admin: Admin) -> None:
    producer.create_topic("ordered", 1)
    results = [producer.send(Message("ordered", b"%d" % number)) for number in range(4)]
    seen = Seen(lambda *_: ConsumeOrderlyStatus.SUCCESS)
    options: dict[str, Any] = {"orderly": True, "consume_message_batch_max_size": 4, "enable_msg_trace": True}
    with consumer(cluster, "orderly", seen, "ordered", **options):
        seen.wait(4)
    views = [traces(admin, result.msg_id, 3) for result in results]
    assert [[view.trace_type for view in each] for each in views] == [[PUB, BEFORE, AFTER]] * 4
    requests = {each[1].request_id for each in views}
    assert {each[2].request_id for each in views} == requests
    assert len(requests) == 1, "all of them at once, and one trace for them"


def test_polled_messages_are_told(cluster: EmbeddedCluster, producer: Producer, admin: Admin) -> None:
    sent = producer.send(Message("polled", b"x"))
    options = LitePullOptions(consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    config = ClientConfig(name_server=cluster.name_server, heartbeat_interval=0.05)
    with LitePullConsumer("polls", config=config, options=options, enable_msg_trace=True) as polls:
        polls.subscribe("polled")
        assert len(polls.poll(PATIENCE)) == 1
    assert [(view.trace_type, view.group) for view in traces(admin, sent.msg_id, 3)] == [
        (PUB, "traced"),
        (BEFORE, "polls"),
        (AFTER, "polls"),
    ]


def test_the_ends_of_transactions_are_told(cluster: EmbeddedCluster, admin: Admin) -> None:
    with TransactionProducer("bank", Bank(), name_server=cluster.name_server, enable_msg_trace=True) as producer:
        results = [
            producer.send_in_transaction(Message("money", b"1", tags="t", keys="k"), state).send_result
            for state in (LocalTransactionState.ROLLBACK_MESSAGE, LocalTransactionState.UNKNOWN)
        ]
    for result, state in zip(results, ("ROLLBACK_MESSAGE", "UNKNOW"), strict=True):
        half, end = traces(admin, result.msg_id, 2)
        assert (half.trace_type, half.message_type) == (PUB, MessageType.TRANSACTION_HALF)
        assert (end.trace_type, end.transaction_state, end.from_transaction_check) == (END, state, False)
        assert (end.transaction_id, end.topic, end.tags, end.keys) == (result.msg_id, "money", "t", "k")
        assert (end.message_type, end.region_id) == (MessageType.TRANSACTION_COMMIT, "DefaultRegion")


def test_another_topic_and_a_namespace(cluster: EmbeddedCluster, admin: Admin) -> None:
    config = ClientConfig(name_server=cluster.name_server, namespace="ns")
    seen = Seen()
    traced: dict[str, Any] = {"config": config, "enable_msg_trace": True, "customized_trace_topic": "my-traces"}
    with Producer("spaced", **traced) as producer:
        sent = producer.send(Message("spaced", b"x"))
        with consumer(cluster, "spaced", seen, "spaced", **traced):
            seen.wait(1)
    views = traces(admin, sent.msg_id, 3, trace_topic="my-traces")
    assert {view.group for view in views} == {"spaced"}
    assert views[0].topic == "spaced"
    assert admin.messages.trace(sent.msg_id) == []


def test_traces_are_not_traced(cluster: EmbeddedCluster, producer: Producer, admin: Admin) -> None:
    sent = producer.send(Message("once", b"x"))
    by_hand = producer.send(Message(TRACE_TOPIC, b"no trace"))
    traces(admin, sent.msg_id, 1)
    seen = Seen()
    with consumer(cluster, "reads-traces", seen, TRACE_TOPIC, enable_msg_trace=True):
        seen.wait(2)
    # a consumer that has ended has sent what it had to tell
    for message in seen.messages:
        assert admin.messages.trace(message.msg_id) == []
    assert admin.messages.trace(by_hand.msg_id) == []


def test_a_trace_is_read_at_the_command_line(cluster: EmbeddedCluster, producer: Producer, admin: Admin) -> None:
    sent: SendResult = producer.send(Message("shown", b"x"))
    traces(admin, sent.msg_id, 1)
    result = run("message", "trace", sent.msg_id, "-n", cluster.name_server, "-o", "csv")
    assert result.exit_code == 0, result.output
    header, row = result.stdout.splitlines()
    assert header == "trace_type,group,client_host,timestamp,cost_time,status,store_host,return_type"
    assert row.startswith("Pub,traced,127.0.0.1,")
    result = run("message", "trace", "none", "-n", cluster.name_server)
    assert result.exit_code == 1
    assert "no trace in RMQ_SYS_TRACE_TOPIC tells of the message none" in result.output
    with pytest.raises(ResponseError, match="No topic route info"):
        admin.messages.trace("none", trace_topic="nowhere")


def test_a_broker_may_want_no_traces_and_another_name_for_them() -> None:
    config = {"traceOn": "false", "traceTopicEnable": "true", "msgTraceTopicName": "watched"}
    with EmbeddedCluster(config=config) as cluster, Admin(name_server=cluster.name_server) as admin:
        with Producer(
            "p", name_server=cluster.name_server, enable_msg_trace=True, customized_trace_topic="watched"
        ) as producer:
            sent = producer.send(Message("t", b"x"))
            assert not sent.is_traced
        assert len(admin.topics.status("watched")) == 1
        assert admin.messages.trace(sent.msg_id, trace_topic="watched") == []
        assert "watched" in cluster.brokers[0].state.topics.system_topics


EXITING = """
import sys
from rmqfast import Message
from rmqfast.client.instance import exits
from rmqfast.client.producer import Producer
exits.LONGEST = 60.0
producer = Producer("exiting", name_server=sys.argv[1], enable_msg_trace=True)
producer.start()
print(producer.send(Message("exits", b"x")).msg_id)
"""


def test_a_process_that_just_ends_sends_its_traces(cluster: EmbeddedCluster, admin: Admin) -> None:
    words = [sys.executable, "-c", EXITING, cluster.name_server]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=2 * PATIENCE)
    assert done.stderr == "" or "no route" in done.stderr, done.stderr
    traces(admin, done.stdout.strip(), 1)
