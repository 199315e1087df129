"""What the clients of a process tell of themselves, at `/metrics` and to OpenTelemetry."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from rmqfast import ClientConfig, EmbeddedCluster, Message, Producer, PushConsumer
from rmqfast.client.metrics import serve_metrics
from rmqfast.client.push import ConsumeConcurrentlyStatus
from rmqfast.otel import observe_clients
from tests.admin.members import online, wants
from tests.waiting import until

from .reading import scrape, value

TOPIC = "told"


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as running:
        yield running


@contextmanager
def consuming(cluster: EmbeddedCluster, group: str, tags: str, got: list[str]) -> Iterator[None]:
    """A push consumer that fails for each body "bad" once."""
    failed: set[str] = set()

    def listen(messages: Any, _context: Any) -> ConsumeConcurrentlyStatus:
        for message in messages:
            if message.body == b"bad" and message.msg_id not in failed:
                failed.add(message.msg_id)
                return ConsumeConcurrentlyStatus.RECONSUME_LATER
            got.append(message.body.decode())
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    config = ClientConfig(name_server=cluster.name_server, instance_name=group)
    consumer = PushConsumer(group, config=config, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer.subscribe(TOPIC, tags)
    consumer.register_message_listener(listen)
    consumer.start()
    try:
        yield
    finally:
        consumer.shutdown()


def send(cluster: EmbeddedCluster, *messages: tuple[str, str]) -> None:
    with Producer("tellers", name_server=cluster.name_server) as producer:
        for tags, body in messages:
            producer.send(Message(TOPIC, body.encode(), tags=tags))


def test_a_push_consumer_counts_what_it_did(cluster: EmbeddedCluster) -> None:
    send(cluster, ("A", "good"), ("A", "bad"), ("A", "good"))
    got: list[str] = []
    labels = {"group": "counting", "topic": TOPIC}
    with serve_metrics(port=0) as server, consuming(cluster, "counting", "A", got):
        until(lambda: value(scrape(server.address), "rmqfast_client_calls_total", **labels) == 3)
        found = scrape(server.address)
        assert value(found, "rmqfast_client_consumed_total", **labels) == 2
        assert value(found, "rmqfast_client_failed_total", **labels) == 1
        assert value(found, "rmqfast_client_pulled_total", **labels) == 3
        assert value(found, "rmqfast_client_dropped_total", **labels) == 0
        # A call is counted before its messages leave their queue.
        until(lambda: value(scrape(server.address), "rmqfast_client_cached_messages", **labels) == 0)
        for name in ("calls", "pulls"):
            assert (value(found, f"rmqfast_client_{name}_total", **labels) or 0) >= 1
        for name in ("call_seconds", "pull_seconds"):
            assert (value(found, f"rmqfast_client_{name}_total", **labels) or 0) > 0
    assert value(found, "rmqfast_client_sends_in_flight", group="tellers") is None


def test_messages_that_a_member_drops_are_counted(cluster: EmbeddedCluster) -> None:
    group, got = "losing", list[str]()
    labels = {"group": group, "topic": TOPIC}
    newest = int(time.time() * 1000) + 3_600_000
    send(cluster, ("A", "x"), ("B", "y"))
    with serve_metrics(port=0) as server, consuming(cluster, group, "B", got):
        until(lambda: "y" in got)
        # From now on the broker filters by what this member wants, and has the other one's queues pulled by it.
        with online(cluster.name_server, "C1", group, [wants(TOPIC, "A", newest)], message_model="CLUSTERING"):
            send(cluster, *[("A", f"x{number}") for number in range(20)])
            until(lambda: (value(scrape(server.address), "rmqfast_client_dropped_total", **labels) or 0) > 0)
    assert "x0" not in got


def test_opentelemetry_collects_the_same_counts(cluster: EmbeddedCluster) -> None:
    reader, group, got = InMemoryMetricReader(), "observed", list[str]()
    observe_clients(MeterProvider([reader]))
    send(cluster, ("T", "once"))

    def consumed() -> list[tuple[float, dict[str, Any]]]:
        data: Any = reader.get_metrics_data()
        metrics = [
            metric
            for resource in (data.resource_metrics if data is not None else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
        ]
        named = [metric for metric in metrics if metric.name == "messaging.client.consumed.messages"]
        points = [point for metric in named for point in metric.data.data_points]
        return [(point.value, dict(point.attributes)) for point in points]

    with consuming(cluster, group, "T", got):
        until(lambda: [number for number, of in consumed() if of["messaging.consumer.group.name"] == group] == [1])
        ((_, attributes),) = [row for row in consumed() if row[1]["messaging.consumer.group.name"] == group]
    assert attributes["messaging.destination.name"] == TOPIC
    assert attributes["messaging.system"] == "rocketmq"
    assert attributes["messaging.client.id"].endswith(group)
