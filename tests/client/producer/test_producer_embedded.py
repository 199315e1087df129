"""All ways to send, by both producers, against a broker in this process; what was stored is read from its store."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeAlias

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rmqfast import EmbeddedCluster, Message, MessageQueue, open_store
from rmqfast.client.instance import ClientConfig
from rmqfast.client.producer import (
    CommunicationMode,
    MessageType,
    Producer,
    ProducerOptions,
    SendContext,
    SendResult,
    SendStatus,
)
from rmqfast.errors import ArgumentError, ClientError, ResponseError, RmqError
from rmqfast.remoting.hash_map import java_hash
from tests.embedded import client as raw
from tests.waiting import PATIENCE, until

#: Makes a producer, of what producers are made of.
Make: TypeAlias = type[Producer]


@pytest.fixture(scope="module")
def cluster(make: Make) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as running:
        yield running


@pytest.fixture
def producer(cluster: EmbeddedCluster, make: Make) -> Iterator[Producer]:
    with make("embedded", name_server=cluster.name_server) as running:
        yield running


def stored(cluster: EmbeddedCluster, topic: str) -> list[dict[str, Any]]:
    """The messages of a topic as the store has them, queue by queue."""
    rows = [
        {**row, "properties": dict(row["properties"])}
        for broker in cluster.brokers
        for row in open_store(broker.state.root).scan(topic).to_arrow().to_pylist()
    ]
    return sorted(rows, key=lambda row: (row["queue_id"], row["queue_offset"]))


def test_a_message_is_stored_as_it_was_given(cluster: EmbeddedCluster, producer: Producer) -> None:
    before = int(time.time() * 1000)
    message = Message("whole", "bödy".encode(), "tag", ["k1", "k2"], {"own": "välue"}, wait_store=False, flag=-7)
    result = producer.send(message)
    after = int(time.time() * 1000)
    (row,) = stored(cluster, "whole")
    assert (row["body"], row["tags"], row["keys"], row["flag"]) == (message.body, "tag", "k1 k2", -7)
    assert (row["msg_id"], row["offset_msg_id"]) == (result.msg_id, result.offset_msg_id)
    assert result.queue in producer.fetch_publish_message_queues("whole")
    assert result.queue.queue_id == row["queue_id"]
    assert (result.status, result.queue_offset, result.region_id) == (SendStatus.SEND_OK, 0, "DefaultRegion")
    assert row["properties"]["own"] == "välue"
    assert before <= round(row["born_timestamp"].timestamp() * 1000) <= after


def test_a_header_is_as_long_as_its_properties_need_and_too_many_are_refused_by_name(
    cluster: EmbeddedCluster, producer: Producer
) -> None:
    """Each separator of properties takes six bytes of a JSON header: 31 KiB of them become 79 KiB."""
    many = {f"p{n}": "v" for n in range(4000)}
    assert producer.send(Message("properties", b"x", properties=many)).status is SendStatus.SEND_OK
    [row] = stored(cluster, "properties")
    assert many.items() <= row["properties"].items()
    with pytest.raises(ResponseError, match="CODE: 13"):
        producer.send(Message("properties", b"x", properties={f"p{n}": "v" * 10 for n in range(4000)}))
    assert producer.send(Message("properties", b"goes on")).status is SendStatus.SEND_OK


@pytest.mark.parametrize("name", ["TIMER_DELAY_MS", "TIMER_DELAY_SEC", "TIMER_DELIVER_MS"])
def test_a_timer_of_5_is_refused_by_name_and_a_level_beside_it_counts(
    cluster: EmbeddedCluster, producer: Producer, name: str
) -> None:
    """By the broker as by one of 5.x without its timer wheel; by the producer as the broker is none of 5.x."""
    answer = raw.send(cluster.brokers[0].address, f"timer-{name}", b"x", **{name: "7000"})  # type: ignore[arg-type]
    assert (answer.code, "accurate timer message is not enabled" in (answer.remark or "")) == (1, True)
    with pytest.raises(ClientError, match=r"needs a broker of RocketMQ 5\.0 or later"):
        producer.send(Message(f"timer-{name}", b"x", properties={name: "7000"}))
    with pytest.raises(ClientError, match="a delay is not supported for batching"):
        producer.send_batch([Message(f"timer-{name}", b"x", properties={name: "7000"})] * 2)
    sent = producer.send(Message(f"timer-{name}", b"x", delay_level=1, properties={name: "7000"}))
    assert sent.status is SendStatus.SEND_OK


def test_a_topic_that_is_not_there_is_made_with_four_queues_and_walked(
    cluster: EmbeddedCluster, producer: Producer
) -> None:
    producer.send(Message("walked", b"first"))
    # the walk begins anew where the route changes: from the one that the topic would have to its own
    producer.fetch_publish_message_queues("walked")
    results = [producer.send(Message("walked", b"%d" % n)) for n in range(8)]
    assert Counter(result.queue.queue_id for result in results) == {0: 2, 1: 2, 2: 2, 3: 2}
    numbers = [result.queue.queue_id for result in results]
    assert all((after - before) % 4 == 1 for before, after in pairwise(numbers))
    assert len(producer.fetch_publish_message_queues("walked")) == 4
    assert len(stored(cluster, "walked")) == 9


def test_a_queue_or_a_selector_chooses(producer: Producer) -> None:
    producer.create_topic("chosen", 6)
    queues = producer.fetch_publish_message_queues("chosen")
    assert [queue.queue_id for queue in queues] == list(range(6))
    assert producer.send(Message("chosen", b"x"), queues[5]).queue == queues[5]
    picked = producer.send(Message("chosen", b"x"), selector=lambda of, _message, n: of[n], argument=2)
    assert picked.queue == queues[2]
    for key in ("order-1", "polygenelubricants", 7, -7):
        expected = abs(key) % 6 if isinstance(key, int) else abs(_signed(java_hash(key))) % 6
        assert producer.send_ordered(Message("chosen", b"x"), key).queue.queue_id == expected


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def test_what_a_selector_gets_wrong_is_said(producer: Producer) -> None:
    message = Message("chosen", b"x")
    with pytest.raises(ClientError, match=r"select message queue return null\."):
        producer.send(message, selector=lambda *_: None)
    with pytest.raises(ClientError, match="message's topic not equal mq's topic"):
        producer.send(message, MessageQueue("other", "b", 0))
    with pytest.raises(ClientError, match=r"The broker\[none\] not exist"):
        producer.send(message, MessageQueue("chosen", "none", 0))
    with pytest.raises(ResponseError, match=r"request queueId\[99\] is illegal"):
        producer.send(
            message, MessageQueue("chosen", producer.fetch_publish_message_queues("chosen")[0].broker_name, 99)
        )


def test_a_batch_is_one_request_with_all_ids(cluster: EmbeddedCluster, producer: Producer) -> None:
    messages = [Message("batched", b"%d" % n, tags="t", keys=f"k{n}", flag=n) for n in range(64)]
    result = producer.send_batch(messages)
    rows = stored(cluster, "batched")
    assert [row["body"] for row in rows] == [message.body for message in messages]
    assert [row["msg_id"] for row in rows] == result.msg_id.split(",")
    assert [row["offset_msg_id"] for row in rows] == result.offset_msg_id.split(",")
    assert [row["flag"] for row in rows] == list(range(64))
    assert {row["queue_id"] for row in rows} == {result.queue.queue_id}


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([], "expected messages, got none"),
        ([Message("a", b"x"), Message("b", b"x")], "The topic of the messages in one batch should be the same"),
        ([Message("a", b"x", delay_level=1)], "TimeDelayLevel is not supported for batching"),
        ([Message("%RETRY%g", b"x")], "Retry Group is not supported for batching"),
        ([Message("a", b"x"), Message("a", b"x", wait_store=False)], "The waitStoreMsgOK of the messages"),
        ([Message("a", b"x"), Message("a", b"")], "the message body length is zero"),
        ([Message("a", b"x" * (1 << 20))] * 4, "the message body size over max value, MAX: 4194304"),
    ],
)
def test_messages_that_make_no_batch_are_refused(producer: Producer, messages: list[Message], text: str) -> None:
    with pytest.raises(ClientError, match=text):
        producer.send_batch(messages)


def test_asynchronous_sends_end_once_each_in_a_callback_or_a_future(
    cluster: EmbeddedCluster, producer: Producer
) -> None:
    ended: list[SendResult | RmqError] = []
    for n in range(500):
        producer.send_async(Message("async", b"%d" % n), ended.append, timeout=PATIENCE)
    until(lambda: len(ended) == 500)
    assert all(isinstance(result, SendResult) for result in ended)
    ids = {result.msg_id for result in ended if isinstance(result, SendResult)}
    future = producer.send_async(Message("async", b"last"))
    ids.add(future.result(PATIENCE).msg_id)
    assert ids == {row["msg_id"] for row in stored(cluster, "async")}
    assert len(ids) == 501


def test_one_way_and_delayed_messages_arrive(cluster: EmbeddedCluster, producer: Producer) -> None:
    producer.send_oneway(Message("oneway", b"x"))
    until(lambda: "oneway" in open_store(cluster.brokers[0].state.root).topics())
    assert [row["body"] for row in stored(cluster, "oneway")] == [b"x"]
    producer.send(Message("delayed", b"later", delay_level=18))
    [row] = [row for row in stored(cluster, "SCHEDULE_TOPIC_XXXX") if row["properties"]["REAL_TOPIC"] == "delayed"]
    assert (row["properties"]["DELAY"], row["queue_id"]) == ("18", 17)


def test_messages_that_no_broker_takes_are_refused_before_they_are_sent(producer: Producer) -> None:
    def begin(message: Message) -> object:
        return producer.send_async(message).result(PATIENCE)

    for send in (producer.send, begin, producer.send_oneway):
        for body in (b"", b"x" * ((4 << 20) + 1)):
            with pytest.raises(ClientError) as raised:
                send(Message("t", body))
            assert raised.value.response_code == 13
    with pytest.raises(ArgumentError, match="0x01 or 0x02"):
        producer.send(Message("t", b"x", properties={"a": "1\x02DELAY\x013"}))


def test_a_producer_has_one_life(make: Make, cluster: EmbeddedCluster) -> None:
    producer = make("life", name_server=cluster.name_server)
    with pytest.raises(ClientError, match="The producer service state not OK, CREATE_JUST"):
        producer.send(Message("t", b"x"))
    producer.start()
    with pytest.raises(ClientError, match="The producer service state not OK, maybe started once, RUNNING"):
        producer.start()
    producer.shutdown()
    producer.shutdown()
    with pytest.raises(ClientError, match="SHUTDOWN_ALREADY"):
        producer.send(Message("t", b"x"))


def test_a_group_has_one_producer_in_an_instance(make: Make, cluster: EmbeddedCluster) -> None:
    with make("once", name_server=cluster.name_server, instance_name="same"):
        with pytest.raises(ClientError, match=r"The producer group\[once\] has been created before"):
            make("once", name_server=cluster.name_server, instance_name="same").start()
        with make("another", name_server=cluster.name_server, instance_name="same") as other:
            assert other.send(Message("t", b"x")).status == "SEND_OK"
    for group in ("", "a b", "DEFAULT_PRODUCER"):
        with pytest.raises(ClientError, match="roup"):
            make(group, name_server=cluster.name_server).start()


def test_without_a_name_server_or_a_topic_the_error_says_what_to_do(make: Make, cluster: EmbeddedCluster) -> None:
    with pytest.raises(ClientError, match="No name server address") as raised:
        make("g", config=ClientConfig(name_server="")).start()
    assert raised.value.response_code == 10004
    options = ProducerOptions(create_topic_key="none")
    with make("g", name_server=cluster.name_server, options=options) as producer:
        calls: list[tuple[Callable[[], object], str]] = [
            (lambda: producer.send(Message("nowhere", b"x")), "nowhere"),
            (lambda: producer.fetch_publish_message_queues("nowhere"), "nowhere"),
            (lambda: producer.create_topic("nowhere"), "none"),
        ]
        for call, topic in calls:
            with pytest.raises(ClientError, match=f"No route info of this topic: {topic}") as missing:
                call()
            assert missing.value.response_code == 10005
        with pytest.raises(ClientError, match="illegal characters"):
            producer.create_topic("a b")


def test_a_namespace_is_wrapped_on_the_way_out_and_not_shown(make: Make, cluster: EmbeddedCluster) -> None:
    with make("g", name_server=cluster.name_server, namespace="ns") as producer:
        result = producer.send(Message("spaced", b"x"))
        assert result.queue.topic == "spaced"
        assert producer.send(Message("spaced", b"y"), result.queue).queue == result.queue
        assert {queue.topic for queue in producer.fetch_publish_message_queues("spaced")} == {"spaced"}
        seen: list[MessageQueue] = []
        producer.send_ordered(Message("spaced", b"z"), "key")

        def first(queues: Sequence[MessageQueue], _message: Message, _argument: Any) -> MessageQueue:
            seen.extend(queues)
            return queues[0]

        producer.send(Message("spaced", b"z"), selector=first)
        assert {queue.topic for queue in seen} == {"spaced"}
        assert producer.send_batch(pa.table({"body": [b"row"]}), result.queue, topic="spaced").queue == result.queue
    rows = stored(cluster, "ns%spaced")
    assert len(rows) == 5
    assert {row["properties"]["INSTANCE_ID"] for row in rows} == {"ns"}


class Watcher:
    """A hook that remembers, and then fails."""

    name = "watcher"

    def __init__(self) -> None:
        self.seen: list[tuple[str, SendContext, SendResult | None]] = []

    def before(self, context: SendContext) -> None:
        self.seen.append(("before", context, context.result))
        raise ValueError

    def after(self, context: SendContext) -> None:
        self.seen.append(("after", context, context.result))
        raise ValueError


def test_hooks_are_told_before_and_after_and_keep_nothing_from_being_sent(
    make: Make, cluster: EmbeddedCluster, producer: Producer
) -> None:
    # nobody waits on a thread for a send that is awaited
    waited = CommunicationMode.SYNC if make is Producer else CommunicationMode.ASYNC
    watcher = Watcher()
    producer.register_send_hook(watcher)
    result = producer.send(Message("hooked", b"x", delay_level=1))
    future = producer.send_async(Message("hooked", b"y")).result(PATIENCE)
    producer.send_oneway(Message("hooked", b"z"))
    with pytest.raises(ResponseError):
        producer.send(Message("hooked", b"x"), MessageQueue("hooked", result.queue.broker_name, 99))
    assert [when for when, *_ in watcher.seen] == ["before", "after"] * 4
    contexts = [context for when, context, _ in watcher.seen if when == "after"]
    assert [context.mode for context in contexts] == [waited, "ASYNC", "ONEWAY", waited]
    assert [context.result for context in contexts] == [result, future, None, None]
    assert isinstance(contexts[3].error, ResponseError)
    assert (contexts[0].message_type, contexts[1].message_type) == (MessageType.DELAY, MessageType.NORMAL)
    assert (contexts[1].broker_address, contexts[1].body_length) == (cluster.brokers[0].address, 1)


class Marks:
    """A hook that puts messages with one more property in the place of others."""

    name = "marks"

    def __init__(self, value: str = "m", more: int = 0) -> None:
        self.value, self.more = value, more

    def before(self, context: SendContext) -> None:
        marked = [replace(each, properties={**each.properties, "mark": self.value}) for each in context.messages]
        context.messages = marked + marked[:1] * self.more

    def after(self, context: SendContext) -> None:
        """Nothing is to be told."""


def test_a_hook_may_put_other_messages_in_their_place_which_keep_their_ids(
    make: Make, cluster: EmbeddedCluster
) -> None:
    with make("marks", name_server=cluster.name_server) as producer:
        producer.register_send_hook(Marks())
        one = Message("marked", b"1", tags="t", properties={"own": "x"})
        results = [producer.send(one), producer.send_async(one).result(PATIENCE), producer.send_batch([one, one])]
        results += producer.send_many([one, one])
        producer.send_oneway(one)
        (rows,) = producer.send_many(pa.table({"body": [b"row"]}), topic="arrow_rows")
    until(lambda: len(stored(cluster, "marked")) == 7)
    found = stored(cluster, "marked")
    assert [(row["tags"], row["properties"]["mark"], row["properties"]["own"]) for row in found] == [
        ("t", "m", "x")
    ] * 7
    assert {message_id for each in results for message_id in each.msg_id.split(",")} <= {row["msg_id"] for row in found}
    (row,) = stored(cluster, "arrow_rows")
    assert ("mark" in row["properties"], row["msg_id"]) == (False, rows.msg_id)
    assert dict(one.properties) == {"own": "x"}


@pytest.mark.parametrize("hook", [Marks("a\x01b"), Marks(more=1), Marks("x" * 300)])
def test_what_a_hook_makes_and_nobody_can_send_is_not_sent(
    make: Make, cluster: EmbeddedCluster, hook: Marks, caplog: pytest.LogCaptureFixture
) -> None:
    topic, options = f"spoilt{hook.more}{len(hook.value)}", ProducerOptions(max_message_size=500)
    with make("spoils", name_server=cluster.name_server, options=options) as producer:
        producer.register_send_hook(hook)
        producer.send_batch([Message(topic, b"1"), Message(topic, b"2")])
    assert [(row["body"], "mark" in row["properties"]) for row in stored(cluster, topic)] == [
        (b"1", False),
        (b"2", False),
    ]
    assert "it is sent as it was" in caplog.text


def numbered(count: int) -> pa.Table:
    """Rows that have all columns, each with values of its own."""
    return pa.table(
        {
            "body": [b"%d" % n for n in range(count)],
            "tags": [None if n % 2 else "even" for n in range(count)],
            "keys": [f"k{n}" for n in range(count)],
            "properties": pa.array([[("n", str(n))] for n in range(count)], pa.map_(pa.string(), pa.string())),
            "flag": pa.array(range(count), pa.int32()),
        }
    )


def told(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What the application gave of rows."""
    return [(row["body"], row["tags"], row["keys"], row["flag"], dict(row["properties"])["n"]) for row in rows]


def test_rows_of_arrow_are_sent_in_batches_queue_after_queue(cluster: EmbeddedCluster, producer: Producer) -> None:
    table = numbered(1000)
    results = producer.send_many(table, topic="rows", batch_size=300)
    assert [len(result.msg_id.split(",")) for result in results] == [300, 300, 300, 100]
    assert {result.queue.queue_id for result in results} == {0, 1, 2, 3}
    rows = {row["msg_id"]: row for row in stored(cluster, "rows")}
    ids = [each for result in results for each in result.msg_id.split(",")]
    assert told([rows[each] for each in ids]) == told(table.to_pylist())
    assert len(rows) == 1000


@pytest.mark.parametrize("shape", ["table", "batch", "reader"])
def test_rows_of_arrow_are_one_batch_of_one_queue(cluster: EmbeddedCluster, producer: Producer, shape: str) -> None:
    table = numbered(500)
    given = {"table": table, "batch": table.to_batches()[0], "reader": table.to_reader(max_chunksize=120)}[shape]
    topic = f"rows-{shape}"
    producer.create_topic(topic, queues=3)
    queue = producer.fetch_publish_message_queues(topic)[1]
    result = producer.send_batch(given, queue, topic=topic)
    assert (result.status, result.queue, result.queue_offset) == (SendStatus.SEND_OK, queue, 0)
    rows = stored(cluster, topic)
    assert [row["msg_id"] for row in rows] == result.msg_id.split(",")
    assert [row["offset_msg_id"] for row in rows] == result.offset_msg_id.split(",")
    assert {row["queue_id"] for row in rows} == {1}
    assert told(rows) == told(table.to_pylist())


@pytest.mark.parametrize(
    ("send", "columns", "text"),
    [
        ("send_batch", {"body": pa.array([], pa.binary())}, "expected messages, got none"),
        ("send_batch", {"body": [b"x", b"x"], "topic": ["a", "b"]}, "in one batch should be the same"),
        ("send_batch", {"body": [b"x"], "topic": ["%RETRY%g"]}, "Retry Group"),
        ("send_batch", {"body": [b"x", b""]}, "row 1: expected a body of one byte or more"),
        ("send_batch", {"body": [b"x" * (1 << 20)] * 5}, "the rows take 2 batches: send them with send_many"),
        ("send_many", {"body": [b"x", b""]}, "row 1: expected a body of one byte or more"),
        ("send_many", {"body": [b"x"], "topic": ["a b"]}, "illegal characters"),
        ("send_many", {"body": [b"x"], "topic": ["%RETRY%g"]}, "Retry Group"),
        ("send_many", {"body": [b"x"], "topic": ["t"], "tags": ["\x01"]}, "0x01 or 0x02"),
        ("send_many", {"body": [b"x" * (4 << 20)]}, "row 0: expected 4194304 bytes at most"),
    ],
)
def test_rows_that_cannot_be_sent_are_named_and_nothing_is_sent(
    cluster: EmbeddedCluster, producer: Producer, send: str, columns: dict[str, Any], text: str
) -> None:
    with pytest.raises((ArgumentError, ClientError), match=text):
        getattr(producer, send)(pa.table(columns), topic="refused")
    assert "refused" not in open_store(cluster.brokers[0].state.root).topics()


@pytest.mark.parametrize("topic", ["frames-pandas", "frames-lazy"])
def test_frames_are_sent_whatever_their_index_is(topic: str, cluster: EmbeddedCluster, producer: Producer) -> None:
    frame: Any = pd.DataFrame({"body": [b"a", b"b", b"c"], "tags": ["x", "y", "x"], "keys": [["k1", "k2"], [], None]})
    frame = frame.astype({"tags": "category"}).sort_values("body", ascending=False)
    producer.send_many(pl.DataFrame(frame).lazy() if topic == "frames-lazy" else frame, topic=topic)
    with open_store(cluster.brokers[0].state.root) as store:
        rows = store.scan(topic, columns=["body", "tags", "keys"]).to_arrow().to_pylist()
    assert [tuple(row.values()) for row in rows] == [(b"c", "x", None), (b"b", "y", None), (b"a", "x", "k1 k2")]


@pytest.mark.parametrize(
    ("send", "given", "text"),
    [
        ("send_many", [{"body": b"x"}], r"message 0: .* got a dict: write Message\(\*\*row\)"),
        ("send_batch", {"body": [b"x"]}, r"got a dict: write pyarrow.table\(columns\)"),
        ("send_many", iter([Message("t", b"x")]), r"got a list_iterator: write list\(messages\)"),
        ("send_many", Message("t", b"x"), r"expected several, got one Message"),
    ],
)
def test_what_is_no_batch_is_told_with_what_to_write(producer: Producer, send: str, given: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        getattr(producer, send)(given)


def test_batches_of_many_are_as_small_as_they_must_be(make: Make, cluster: EmbeddedCluster) -> None:
    options = ProducerOptions(max_message_size=2000)
    with make("small", name_server=cluster.name_server, options=options) as producer:
        messages = [Message("many", b"x" * 600)] * 5
        sizes = [len(result.msg_id.split(",")) for result in producer.send_many(messages)]
        table = pa.table({"topic": ["many-a", "many-a", "many-a", "many-b"], "body": [b"x" * 600] * 4})
        results = producer.send_many(table)
    assert sizes == [2, 2, 1]
    assert [(result.queue.topic, len(result.msg_id.split(","))) for result in results] == [
        ("many-a", 2),
        ("many-a", 1),
        ("many-b", 1),
    ]
