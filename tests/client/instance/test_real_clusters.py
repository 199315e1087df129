"""Client instances against RocketMQ's own brokers, seen by its own tools; and against ours, seen by the same."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rmqfast.client.instance import ClientConfig, ClientInstance
from rmqfast.errors import ClientError, ResponseError
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from tests.broker.interop.cluster import Cluster, version_of
from tests.broker.interop.mqadmin import Admin as MqAdmin
from tests.client.instance.doubles import FakeConsumer, FakeProducer
from tests.embedded.client import send
from tests.interop.rocketmq import running
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.soak, pytest.mark.timeout(600)]


@pytest.fixture
def instance(each_cluster: Cluster) -> Iterator[ClientInstance]:
    config = ClientConfig(
        name_server=each_cluster.name_server, instance_name=f"real{time.monotonic_ns()}", poll_name_server_interval=1.0
    )
    made = ClientInstance.of(config, config.client_id())
    yield made
    made.unregister_consumer("cg")
    made.unregister_producer("pg")
    made.release()


def consuming(each_cluster: Cluster, instance: ClientInstance) -> FakeConsumer:
    """A consumer and a producer that the broker knows of."""
    until(lambda: send(each_cluster.broker, "t", b"x").code == 0)
    consumer = FakeConsumer("cg", "t")
    instance.register_consumer("cg", consumer)
    instance.register_producer("pg", FakeProducer("t"))
    instance.start()
    until(lambda: consumer.queues.get("t"))
    until(instance.send_heartbeats)
    return consumer


def test_mqadmin_sees_the_consumer_and_the_producer(
    each_cluster: Cluster, mqadmin: MqAdmin, instance: ClientInstance
) -> None:
    consuming(each_cluster, instance)
    seen = mqadmin(["consumerConnection", "-g", "cg"])
    assert instance.client_id in seen
    assert "V4_9_4" in seen
    assert "t" in seen
    assert "CONSUME_PASSIVELY" in seen
    assert "CLUSTERING" in seen
    assert instance.client_id in mqadmin(["producerConnection", "-g", "pg", "-t", "t"])
    assert instance.find_consumer_ids("t", "cg") == [instance.client_id]
    instance.unregister_consumer("cg")
    assert instance.client_id not in mqadmin(["consumerConnection", "-g", "cg"])


def test_mqadmin_sees_what_the_consumer_does(each_cluster: Cluster, mqadmin: MqAdmin, instance: ClientInstance) -> None:
    consuming(each_cluster, instance)
    seen = mqadmin(["consumerStatus", "-g", "cg", "-i", instance.client_id])
    assert "#Consumer Properties#" in seen
    assert "PROP_CLIENT_VERSION" in seen
    assert f"{each_cluster.name_server};" in seen
    stacks = mqadmin(["consumerStatus", "-g", "cg", "-i", instance.client_id, "-s"])
    assert "TID" in stacks


def test_mqadmin_resets_the_consumers_offsets(
    each_cluster: Cluster, mqadmin: MqAdmin, instance: ClientInstance
) -> None:
    consumer = consuming(each_cluster, instance)
    for queue in consumer.queues["t"]:
        instance.api.update_consumer_offset(each_cluster.broker, "cg", queue, 1, oneway=False)
    mqadmin(["resetOffsetByTime", "-g", "cg", "-t", "t", "-s", "1000", "-f", "true"])
    if version_of(each_cluster).startswith(
        "5"
    ):  # it does so by itself (useServerSideResetOffset), and tells no consumer
        queues = consumer.queues["t"]
        until(lambda: {instance.api.query_consumer_offset(each_cluster.broker, "cg", queue) for queue in queues} == {0})
        assert consumer.reset == []
        return
    until(lambda: consumer.reset)
    topic, offsets = consumer.reset[0]
    assert topic == "t"
    assert set(offsets) == set(consumer.queues["t"])
    assert set(offsets.values()) == {0}


def test_a_java_consumer_that_joins_and_leaves_wakes_the_rebalance(
    each_cluster: Cluster, instance: ClientInstance, tmp_path: Path
) -> None:
    consumer = consuming(each_cluster, instance)
    words = ("--namesrv", each_cluster.name_server, "--topic", "t", "--group", "cg")
    before = consumer.rebalanced
    stay = ("--idle-ms", 400_000, "--timeout-ms", 400_000)
    with running(version_of(each_cluster), "Consume", *words, *stay, log=tmp_path / "log"):
        until(lambda: len(instance.find_consumer_ids("t", "cg") or ()) == 2)
        until(lambda: consumer.rebalanced > before)
        (java,) = {*(instance.find_consumer_ids("t", "cg") or ())} - {instance.client_id}
        assert java.partition("@")[0] == instance.client_id.partition("@")[0], "both say the same address of this host"
        before = consumer.rebalanced
    until(lambda: consumer.rebalanced > before)
    until(lambda: instance.find_consumer_ids("t", "cg") == [instance.client_id])


def test_the_broker_compiles_expressions(each_cluster: Cluster, instance: ClientInstance) -> None:
    consumer = consuming(each_cluster, instance)
    sql = SubscriptionData(topic="t", sub_string="a > 1", expression_type="SQL92", sub_version=1)
    consumer.wanted = [sql]
    instance.check_client_in_broker()
    consumer.wanted = [SubscriptionData(topic="t", sub_string="a >", expression_type="SQL92", sub_version=1)]
    with pytest.raises(ClientError, match="CODE: 23 ") as caught:
        instance.check_client_in_broker()
    assert caught.value.response_code == 23


def test_all_requests_of_a_client_are_answered(each_cluster: Cluster, instance: ClientInstance) -> None:
    consumer, api, address = consuming(each_cluster, instance), instance.api, each_cluster.broker
    queue = consumer.queues["t"][0]
    assert api.cluster_info().clusters
    assert "t" in api.all_topics()
    assert "t" in api.topics_of_cluster(next(iter(api.cluster_info().clusters)))
    assert (api.min_offset(address, queue), api.max_offset(address, queue) > 0) == (0, True)
    assert api.earliest_store_time(address, queue) > 1_700_000_000_000
    assert api.search_offset(address, queue, 0) == 0
    # to 5.3.3 a group is one once a heartbeat came, and what is stored for another one is lost
    instance.register_consumer("offsets", FakeConsumer("offsets", "t"))
    until(instance.send_heartbeats)
    api.update_consumer_offset(address, "offsets", queue, 1)
    until(lambda: api.query_consumer_offset(address, "offsets", queue) == 1)
    instance.unregister_consumer("offsets")
    nowhere = MessageQueue("t", queue.broker_name, 3)
    assert api.query_consumer_offset(address, "fresh2", nowhere) in {0, None}
    assert api.lock_batch(address, "lg", "one", [queue]) == {queue}
    assert api.lock_batch(address, "lg", "two", [queue]) == set()
    api.unlock_batch(address, "lg", "one", [queue], oneway=True)
    until(lambda: api.lock_batch(address, "lg", "two", [queue]) == {queue})
    assert b"x" in api.view_message(address, 0)
    with pytest.raises(ResponseError, match="BROKER"):
        api.view_message(address, 1 << 40)
    with pytest.raises(ResponseError) as caught:
        api.topic_route("nowhere")
    assert caught.value.code == 17
    found = instance.routes.subscribe_address(queue.broker_name)
    assert found is not None
    assert found.version == {"4.9.4": 401, "5.3.3": 479, "5.5.0": 513}[version_of(each_cluster)]


def test_a_cluster_that_is_down_for_a_while_is_one_error_and_then_heals(
    each_cluster: Cluster, instance: ClientInstance, caplog: pytest.LogCaptureFixture
) -> None:
    consuming(each_cluster, instance)
    each_cluster.stop()
    try:
        with pytest.raises(ClientError, match=f"connect to <{each_cluster.name_server}> failed"):
            instance.update_route("t")
        assert instance.routes.get("t") is not None
        # the same thread does both: behind these rounds there are as many of the routes' timer
        rounds: list[int] = []
        instance.scheduler.every(0.0, instance.config.poll_name_server_interval, lambda: rounds.append(1))
        until(lambda: len(rounds) >= 4)
        assert caplog.text.count("routes are not updated") <= 1
    finally:
        each_cluster.start()
    until(lambda: instance.find_consumer_ids("t", "cg") == [instance.client_id])
    until(lambda: not instance.update_route("t") and instance.api.topic_route("t").queue_datas)
