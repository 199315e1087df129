"""Spans of messages that are sent and consumed, as an application's exporter gets them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from rmqfast import EmbeddedCluster, Message, MessageQueue
from rmqfast.client.consumer import MessageView
from rmqfast.client.instance import ClientConfig
from rmqfast.client.lite_pull import LitePullConsumer
from rmqfast.client.producer import LocalTransactionState, Producer, ProducerOptions, TransactionProducer
from rmqfast.client.pull import PullConsumer
from rmqfast.client.push import ConsumeConcurrentlyStatus, PushConsumer
from rmqfast.client.push.push_member import PushMember
from rmqfast.errors import ArgumentError, RemotingTimeoutError, ResponseError
from rmqfast.otel import instrument
from tests.client.producer.transactions import ASKS_SOON, UNASKED, Bank
from tests.client.push.listening import Seen, consumer, member_of
from tests.proxy import gated
from tests.waiting import PATIENCE, until

SUCCESS, LATER = ConsumeConcurrentlyStatus.CONSUME_SUCCESS, ConsumeConcurrentlyStatus.RECONSUME_LATER


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(config={"messageDelayLevel": "0s " * 17 + "0s", **ASKS_SOON}) as running:
        yield running


class Spans:
    """Where spans go, and what came."""

    def __init__(self) -> None:
        self.provider, self._exporter = TracerProvider(), InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self.provider.get_tracer("test")

    def __call__(self, name: str, count: int = 1) -> list[ReadableSpan]:
        """The spans of a name, once there are so many."""
        until(lambda: len(self.named(name)) >= count)
        found = self.named(name)
        assert len(found) == count, [span.name for span in self._exporter.get_finished_spans()]
        return found

    def named(self, name: str) -> list[ReadableSpan]:
        """The spans of a name that have ended so far."""
        return [span for span in self._exporter.get_finished_spans() if span.name == name]


@pytest.fixture
def spans() -> Spans:
    return Spans()


@pytest.fixture
def producer(cluster: EmbeddedCluster, spans: Spans) -> Iterator[Producer]:
    with Producer("spans", name_server=cluster.name_server) as running:
        instrument(running, spans.provider)
        yield running


def ids(span: ReadableSpan) -> tuple[int, int]:
    assert span.context is not None
    return span.context.trace_id, span.context.span_id


def parent(span: ReadableSpan) -> tuple[int, int] | None:
    return None if span.parent is None else (span.parent.trace_id, span.parent.span_id)


def links(span: ReadableSpan) -> list[tuple[int, int]]:
    return [(link.context.trace_id, link.context.span_id) for link in span.links]


def attributes(span: ReadableSpan) -> dict[str, Any]:
    found = dict(span.attributes or {})
    assert found.pop("messaging.system") == "rocketmq"
    return {name.removeprefix("messaging."): value for name, value in found.items()}


def push(cluster: EmbeddedCluster, spans: Spans, topic: str, listener: Any, **options: Any) -> PushConsumer:
    made = consumer(cluster, f"{topic}-g", listener, topic, **options)
    instrument(made, spans.provider)
    return made


def test_a_message_is_processed_within_the_span_that_published_it(
    cluster: EmbeddedCluster, producer: Producer, spans: Spans
) -> None:
    def answer(*_: Any) -> Any:
        with spans.tracer.start_as_current_span("inner"):
            return SUCCESS

    with spans.tracer.start_as_current_span("outer"):
        sent = producer.send(Message("one", b"body", tags="t", keys="k1 k2", properties={"own": "x"}), timeout=PATIENCE)
    seen = Seen(answer)
    with push(cluster, spans, "one", seen) as one:
        seen.wait(1)
        consumer_id = one.client_id
        (processed,) = spans("one process")
    (outer,), (inner,) = spans("outer"), spans("inner")
    published = spans.named("one publish")[-1]  # on a slow machine it may be the second attempt
    assert (parent(published), parent(processed), parent(inner)) == (ids(outer), ids(published), ids(processed))
    assert (published.kind, processed.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert {published.status.status_code, processed.status.status_code} == {StatusCode.UNSET}
    host, _, port = cluster.brokers[0].address.rpartition(":")
    both = {
        "destination.name": "one",
        "destination.partition.id": str(sent.queue.queue_id),
        "message.id": sent.msg_id,
        "rocketmq.message.tag": "t",
        "rocketmq.message.keys": ("k1", "k2"),
        "server.address": host,
        "server.port": int(port),
    }
    assert attributes(published) == both | {
        "operation.name": "publish",
        "operation.type": "send",
        "client.id": producer.client_id,
        "rocketmq.client_group": "spans",
        "message.body.size": 4,
        "rocketmq.message.type": "normal",
    }
    (message,) = seen.messages
    assert attributes(processed) == both | {
        "operation.name": "process",
        "operation.type": "process",
        "client.id": consumer_id,
        "consumer.group.name": "one-g",
        "rocketmq.client_group": "one-g",
        "rocketmq.consumption_model": "clustering",
        "message.envelope.size": message.store_size,
    }
    trace_id, span_id = ids(published)
    assert str(message.property("traceparent")).startswith(f"00-{trace_id:032x}-{span_id:016x}-")
    assert message.property("own") == "x"


def test_each_way_to_send_has_a_span_and_takes_its_context_along(
    cluster: EmbeddedCluster, producer: Producer, spans: Spans
) -> None:
    producer.create_topic("ways", 1)
    (queue,) = producer.fetch_publish_message_queues("ways")
    producer.send_async(Message("ways", b"1")).result(PATIENCE)
    producer.send_oneway(Message("ways", b"2"))
    batch = producer.send_batch([Message("ways", b"3"), Message("ways", b"4")])
    producer.send_many([Message("ways", b"5"), Message("ways", b"6")], batch_size=1)
    producer.send_many(pa.table({"body": [b"7"]}), topic="ways")
    producer.send(Message("ways", b"8", delay_level=1))
    found = spans("ways publish", 7)
    with PullConsumer("pulls-ways", name_server=cluster.name_server) as consumer:
        instrument(consumer, spans.provider)
        until(lambda: consumer.max_offset(queue) == 8)
        messages = {message.body: message for message in consumer.pull(queue, "*", 0, 32).messages}
    assert len(messages) == 8
    assert [key for key, value in sorted(messages.items()) if value.property("traceparent") is None] == [b"7"]
    (received,) = spans("ways receive")
    assert received.kind is SpanKind.CLIENT
    sent = {ids(span) for span in found}
    assert len(links(received)) == 7
    assert len(sent - set(links(received))) == 1, "but for the rows of a table"
    told = [attributes(span) for span in found]
    (of_batch,) = [each for each in told if each.get("batch.message_count") == 2]
    assert "message.id" not in of_batch
    assert batch.queue == queue
    assert [each["rocketmq.message.delay_time_level"] for each in told if each["rocketmq.message.type"] == "delay"] == [
        1
    ]
    assert attributes(received)["batch.message_count"] == 8


def test_rows_take_the_context_along_that_their_properties_have(
    cluster: EmbeddedCluster, producer: Producer, spans: Spans
) -> None:
    producer.create_topic("rows", 1)
    (queue,) = producer.fetch_publish_message_queues("rows")
    with spans.tracer.start_as_current_span("outer") as outer:
        context: dict[str, str] = {}
        TraceContextTextMapPropagator().inject(context)
        properties = pa.array([list(context.items()), [("own", "x")], None], pa.map_(pa.string(), pa.string()))
        producer.send_batch(pa.table({"body": [b"1", b"2", b"3"], "properties": properties}), queue, topic="rows")
    with PullConsumer("pulls-rows", name_server=cluster.name_server) as consumer:
        instrument(consumer, spans.provider)
        until(lambda: consumer.max_offset(queue) == 3)
        messages = consumer.pull(queue, "*", 0, 32).messages
    assert [message.property("traceparent") for message in messages] == [context["traceparent"], None, None]
    assert [message.property("own") for message in messages] == [None, "x", None]
    (received,), (published,) = spans("rows receive"), spans("rows publish")
    within = outer.get_span_context()
    assert links(received) == [(within.trace_id, within.span_id)] == [parent(published)]
    assert attributes(published)["batch.message_count"] == 3


def test_several_messages_at_once_have_links_to_their_publishers(
    cluster: EmbeddedCluster, producer: Producer, spans: Spans
) -> None:
    producer.create_topic("several", 1)
    for number in range(4):
        producer.send(Message("several", b"%d" % number))
    with Producer("plain", name_server=cluster.name_server) as plain:
        plain.send(Message("several", b"without"))
    seen = Seen()
    with push(cluster, spans, "several", seen, consume_message_batch_max_size=5):
        seen.wait(5)
    found = spans.named("several process")  # a shutdown waits for the listener
    assert sum(attributes(span).get("batch.message_count", 1) for span in found) == 5
    linked = [each for span in found for each in [*links(span), parent(span)] if each]
    assert sorted(linked) == sorted(ids(span) for span in spans("several publish", 4))


def test_polled_messages_are_received(cluster: EmbeddedCluster, producer: Producer, spans: Spans) -> None:
    sent = producer.send(Message("polled", b"x"))
    with LitePullConsumer("polls", name_server=cluster.name_server) as consumer:
        instrument(consumer, spans.provider)
        consumer.assign([sent.queue])
        consumer.seek_to_begin(sent.queue)
        (message,) = consumer.poll(PATIENCE)
    (received,), (published,) = spans("polled receive"), spans("polled publish")
    assert (links(received), parent(received)) == ([ids(published)], None)
    assert attributes(received)["message.id"] == message.msg_id


def test_failures_are_told(cluster: EmbeddedCluster, producer: Producer, spans: Spans) -> None:
    def answer(messages: Any, _: Any) -> Any:
        if messages[0].reconsume_times == 0:
            raise KeyError("lost")
        return LATER if messages[0].reconsume_times == 1 else SUCCESS

    sent = producer.send(Message("fails", b"x"))
    with pytest.raises(ResponseError):
        producer.send(Message("fails", b"x"), MessageQueue("fails", sent.queue.broker_name, 99))
    seen = Seen(answer)
    with push(cluster, spans, "fails", seen):
        seen.wait(3)
    good, bad = spans("fails publish", 2)
    raised, later, done = spans("fails process", 3)
    assert {parent(span) for span in (raised, later, done)} == {ids(good)}, "a retry is of the same message"
    codes = [span.status.status_code for span in (good, bad, raised, later, done)]
    assert codes == [StatusCode.UNSET, StatusCode.ERROR, StatusCode.ERROR, StatusCode.ERROR, StatusCode.UNSET]
    types = [(span.attributes or {}).get("error.type") for span in (bad, raised, later)]
    assert types == ["ResponseError", "KeyError", "RECONSUME_LATER"]
    assert [event.name for span in (bad, raised) for event in span.events] == ["exception", "exception"]


def test_a_send_that_there_is_no_room_for_has_an_end(cluster: EmbeddedCluster, spans: Spans) -> None:
    options = ProducerOptions(max_in_flight=1)
    with gated(cluster) as (gate, config), Producer("pressed", config=config, options=options) as producer:
        instrument(producer, spans.provider)
        producer.send(Message("pressed", b"0"))
        gate.shut()
        waits = producer.send_async(Message("pressed", b"1"), timeout=PATIENCE)
        with pytest.raises(RemotingTimeoutError):
            producer.send_async(Message("pressed", b"2"), timeout=0.05)
        (_, refused) = spans("pressed publish", 2)
        gate.open()
        waits.result(PATIENCE)
    assert refused.status.status_code is StatusCode.ERROR
    ended = [span.status.status_code for span in spans("pressed publish", 3)]
    assert ended == [StatusCode.UNSET, StatusCode.ERROR, StatusCode.UNSET]


def test_transactions_and_namespaces(cluster: EmbeddedCluster, spans: Spans) -> None:
    config = ClientConfig(name_server=cluster.name_server, namespace="ns")
    with TransactionProducer("bank", Bank(), config=config) as producer:
        instrument(producer, spans.provider)
        producer.send_in_transaction(Message("money", b"1", properties=UNASKED), timeout=PATIENCE)
    (published,), (committed,) = spans("money publish"), spans("money commit")
    told = attributes(published)
    assert {attributes(committed)[name] for name in ("rocketmq.namespace", "rocketmq.client_group")} == {"ns", "bank"}
    assert (told["rocketmq.message.type"], told["rocketmq.namespace"]) == ("transaction", "ns")
    assert (told["destination.name"], told["rocketmq.client_group"]) == ("money", "bank")
    seen = Seen()
    with push(cluster, spans, "money", seen, config=config):
        seen.wait(1)
        (processed,) = spans("money process")
    assert parent(processed) == ids(published)
    assert attributes(processed)["rocketmq.namespace"] == "ns"


def test_how_a_transaction_ended_stands_below_its_message(cluster: EmbeddedCluster, spans: Spans) -> None:
    messages = {
        state: Message("ends", b"x", tags="t", keys="k", properties=UNASKED)
        for state in (LocalTransactionState.COMMIT_MESSAGE, LocalTransactionState.ROLLBACK_MESSAGE)
    }
    messages[LocalTransactionState.UNKNOWN] = Message("ends", b"x", tags="t", keys="k")
    with TransactionProducer("ending", Bank(), name_server=cluster.name_server) as producer:
        instrument(producer, spans.provider)
        with spans.tracer.start_as_current_span("outer"):
            sent = {
                state: producer.send_in_transaction(message, state, PATIENCE).send_result
                for state, message in messages.items()
            }
        known, lost, unknown = (sent[state].msg_id for state in LocalTransactionState)
        # of the one that is not known the broker asks, and asks again where it was not told soon enough
        until(lambda: unknown in of_message(spans, "ends commit"))
        client_id = producer.client_id
    published = of_message(spans, "ends publish")
    found = {name: of_message(spans, f"ends {name}") for name in ("commit", "rollback", "unknown")}
    assert {name: set(ended) for name, ended in found.items()} == {
        "commit": {known, unknown},
        "rollback": {lost},
        "unknown": {unknown},
    }
    for ended in found.values():
        assert {name: parent(span) for name, span in ended.items()} == {name: ids(published[name]) for name in ended}
    rolled_back = found["rollback"][lost]
    assert (rolled_back.kind, rolled_back.status.status_code) == (SpanKind.CLIENT, StatusCode.UNSET)
    host, _, port = cluster.brokers[0].address.rpartition(":")
    told = {
        "operation.type": "settle",
        "destination.name": "ends",
        "client.id": client_id,
        "rocketmq.client_group": "ending",
        "rocketmq.message.type": "transaction",
        "rocketmq.message.tag": "t",
        "rocketmq.message.keys": ("k",),
        "server.address": host,
        "server.port": int(port),
    }
    assert attributes(rolled_back) == told | {"operation.name": "rollback", "message.id": lost}
    assert attributes(found["commit"][unknown]) == told | {"operation.name": "commit", "message.id": unknown}


def of_message(spans: Spans, name: str) -> dict[str, ReadableSpan]:
    """The newest span of a name for each message."""
    return {attributes(span)["message.id"]: span for span in spans.named(name)}


def test_a_client_is_instrumented_once_and_only_clients_are(producer: Producer, spans: Spans) -> None:
    instrument(producer, spans.provider)
    producer.send(Message("once", b"x"))
    spans("once publish")
    with pytest.raises(ArgumentError, match="expected a producer or a consumer, got str"):
        instrument("producer", spans.provider)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Producer, TransactionProducer, PushConsumer, LitePullConsumer, PullConsumer])
def test_a_client_that_is_dropped_is_not_kept_for_its_spans(cluster: EmbeddedCluster, spans: Spans, kind: Any) -> None:
    def drop() -> None:
        if kind is PushConsumer:
            client: Any = consumer(cluster, "dropped", Seen(), "dropped")
        else:
            given = [Bank()] if kind is TransactionProducer else []
            client = kind("dropped", *given, name_server=cluster.name_server)
        instrument(client, spans.provider)
        client.start()

    with pytest.warns(ResourceWarning, match=f"{kind.__name__} of the group dropped was dropped") as caught:
        drop()
    left: Any = caught[0].source
    left.shutdown()


def test_spans_of_a_consumer_that_was_dropped_go_on_and_name_it(
    cluster: EmbeddedCluster, producer: Producer, spans: Spans
) -> None:
    seen = Seen()

    def drop() -> tuple[str, PushMember]:
        one = consumer(cluster, "goes-on", seen, "goes-on", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
        instrument(one, spans.provider)
        one.start()
        producer.send(Message("goes-on", b"1"))
        spans("goes-on process")
        return one.client_id, member_of(one)

    with pytest.warns(ResourceWarning, match="PushConsumer of the group goes-on was dropped"):
        client_id, member = drop()
    producer.send(Message("goes-on", b"2"))
    named = [attributes(span)["client.id"] for span in spans("goes-on process", 2)]
    assert named == [client_id, client_id]
    member.shutdown()
    member.instance.release()


class Silent(TextMapPropagator):
    """Writes nothing."""

    def extract(self, carrier: Any, context: Any = None, getter: Any = None) -> Any:
        return TraceContextTextMapPropagator().extract(carrier, context, getter)

    def inject(self, carrier: Any, context: Any = None, setter: Any = None) -> None:
        """Nothing."""

    @property
    def fields(self) -> set[str]:
        return set()


def test_what_writes_contexts_may_be_another(cluster: EmbeddedCluster, spans: Spans) -> None:
    with Producer("silent", name_server=cluster.name_server) as producer:
        instrument(producer, spans.provider, propagator=Silent())
        sent = producer.send(Message("silent", b"x"))
    with PullConsumer("silent-g", name_server=cluster.name_server) as consumer:
        found: list[MessageView] = consumer.pull(sent.queue, "*", 0, 32).messages
    assert [message.property("traceparent") for message in found] == [None]
    spans("silent publish")


NOT_INSTALLED = """
import sys, rmqfast, rmqfast.admin, rmqfast.embedded
import rmqfast.client.producer, rmqfast.client.push, rmqfast.client.pull, rmqfast.client.lite_pull
print("opentelemetry" in sys.modules)
sys.modules["opentelemetry"] = None
from rmqfast.errors import MissingExtraError
try:
    import rmqfast.otel
except MissingExtraError as error:
    print(error, error.name)
"""


def test_nothing_imports_opentelemetry_unless_asked_which_then_says_what_to_install() -> None:
    command = [sys.executable, "-c", NOT_INSTALLED]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=2 * PATIENCE).stdout
    unasked, asked = printed.splitlines()
    assert unasked == "False"
    assert "pip install 'rmqfast[otel]'" in asked
    assert asked.endswith(" opentelemetry")
