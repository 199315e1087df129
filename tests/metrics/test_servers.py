"""What a broker and a name server tell of themselves, beside what administrators are told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rmqfast import Admin, EmbeddedCluster, LitePullConsumer, Message, Producer
from rmqfast.admin import Snapshot
from rmqfast.message import MessageQueue
from rmqfast.nameserver import NameServer
from rmqfast.nameserver.config import NamesrvConfig
from rmqfast.remoting import RemotingClient, RequestCode
from tests.admin.members import online, wants
from tests.waiting import until

from .reading import scrape, value

TOPIC, GROUP = "measured", "measurers"
HOUR = 3600


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    config = {"metricsPort": "0", "fileReservedTime": "2", "brokerClusterName": "C"}
    with EmbeddedCluster(config=config) as running:
        yield running


@pytest.fixture(scope="module")
def admin(cluster: EmbeddedCluster) -> Iterator[Admin]:
    """An administrator of a cluster with ten messages, of which a group has taken four."""
    with Admin(name_server=cluster.name_server) as admin:
        admin.create_topic(TOPIC, queues=2)
        with Producer("makers", name_server=cluster.name_server) as producer:
            for number in range(10):
                producer.send(Message(TOPIC, b"x" * 100), MessageQueue(TOPIC, "broker-a", number % 2))
        admin.create_group(GROUP)
        for queue_id in range(2):
            admin.offsets.reset(GROUP, MessageQueue(TOPIC, "broker-a", queue_id), 2)
        yield admin


def test_lags_are_those_of_the_snapshot(cluster: EmbeddedCluster, admin: Admin) -> None:
    found = scrape(cluster.brokers[0].metrics_address)
    snapshot: Snapshot = admin.snapshot()
    (group,) = [each for each in snapshot.groups if each.group == GROUP]
    assert group.progress is not None
    names = {"topic": TOPIC, "consumer_group": GROUP, "is_retry": "false", "is_system": "false"}
    names |= {"cluster": "C", "node_type": "broker", "node_id": "broker-a"}
    assert value(found, "rocketmq_consumer_lag_messages", **names) == group.progress.diff_total == 6
    oldest = min(row.unread_timestamp or 0 for row in group.progress)
    seconds = value(found, "rmqfast_group_lag_seconds", topic=TOPIC, group=GROUP)
    assert seconds is not None
    # Of the scrape before the snapshot.
    assert 0 <= seconds <= (snapshot.taken_at - oldest) / 1000
    latency = value(found, "rocketmq_consumer_lag_latency", **names)
    assert latency == pytest.approx(seconds * 1000)
    left = value(found, "rmqfast_group_retention_seconds", topic=TOPIC, group=GROUP)
    assert left == pytest.approx(2 * HOUR - seconds)


def test_a_group_that_has_read_everything_has_no_lag_and_no_deadline(cluster: EmbeddedCluster, admin: Admin) -> None:
    for queue_id in range(2):
        admin.offsets.reset("done", MessageQueue(TOPIC, "broker-a", queue_id), 5)
    # Offsets of a group that is not there, as after its deletion, are no lag of anybody.
    found = scrape(cluster.brokers[0].metrics_address)
    assert value(found, "rocketmq_consumer_lag_messages", topic=TOPIC, consumer_group="done") is None
    admin.create_group("done")
    found = scrape(cluster.brokers[0].metrics_address)
    assert value(found, "rocketmq_consumer_lag_messages", topic=TOPIC, consumer_group="done") == 0
    assert value(found, "rmqfast_group_lag_seconds", topic=TOPIC, group="done") == 0
    assert value(found, "rmqfast_group_retention_seconds", topic=TOPIC, group="done") is None


def test_a_topic_that_a_group_no_longer_subscribes_to_is_no_lag(cluster: EmbeddedCluster, admin: Admin) -> None:
    group = "moved_on"
    admin.create_topic("another")
    admin.create_group(group)
    admin.offsets.reset(group, MessageQueue(TOPIC, "broker-a", 0), 0)

    def lag() -> float | None:
        return value(scrape(cluster.brokers[0].metrics_address), "rmqfast_group_lag_seconds", topic=TOPIC, group=group)

    assert lag() is not None
    with online(cluster.name_server, "C1", group, [wants("another", "*")]):
        assert lag() is None
    assert lag() is not None


def test_messages_are_counted_in_and_out(cluster: EmbeddedCluster, admin: Admin) -> None:
    topic, group = "counted", "counters"
    admin.create_topic(topic, queues=1)
    with Producer("makers", name_server=cluster.name_server) as producer:
        for _ in range(7):
            producer.send(Message(topic, b"x" * 100))
    admin.offsets.reset(group, MessageQueue(topic, "broker-a", 0), 0)
    with LitePullConsumer(group, name_server=cluster.name_server) as consumer:
        consumer.subscribe(topic)
        got = 0
        while got < 7:
            got += len(consumer.poll(1))
        found = scrape(cluster.brokers[0].metrics_address)
        assert value(found, "rocketmq_messages_in_total", topic=topic) == 7
        assert value(found, "rocketmq_messages_out_total", topic=topic, consumer_group=group) == 7
        size = value(found, "rocketmq_throughput_in_total", topic=topic)
        assert size is not None
        assert size > 700
        assert value(found, "rocketmq_throughput_out_total", topic=topic) == size
        assert value(found, "rocketmq_consumer_connections", consumer_group=group, consume_mode="pull") == 1
        until(lambda: (value(scrape(cluster.brokers[0].metrics_address), "rmqfast_held_pulls") or 0) >= 1)
    puts = value(found, "rmqfast_put_seconds_count")
    assert puts is not None
    assert puts >= 17


def test_members_who_subscribe_differently_are_counted(cluster: EmbeddedCluster, admin: Admin) -> None:
    topic, group = TOPIC, "disagreeing"
    assert admin.topics.status(topic)
    with (
        online(cluster.name_server, "C1", group, [wants(topic, "TagA", 1)]),
        online(cluster.name_server, "C2", group, [wants(topic, "TagB", 2)]),
        online(cluster.name_server, "C3", group, [wants(topic, "TagB", 2)]),
    ):
        found = scrape(cluster.brokers[0].metrics_address)
        assert value(found, "rmqfast_group_subscription_conflict", topic=topic, group=group) == 1
        assert value(found, "rocketmq_consumer_connections", consumer_group=group) == 3
    found = scrape(cluster.brokers[0].metrics_address)
    assert value(found, "rmqfast_group_subscription_conflict", topic=topic, group=group) is None


def test_dead_letters_and_messages_sent_back_are_counted(cluster: EmbeddedCluster, admin: Admin) -> None:
    topic, group = "failing", "failed"
    admin.create_topic(topic, queues=1)
    admin.create_group(group, retry_max_times=0)
    with Producer("makers", name_server=cluster.name_server) as producer:
        sent = producer.send(Message(topic, b"x"))
    fields = {
        "offset": str(int(sent.offset_msg_id[16:], 16)),
        "group": group,
        "delayLevel": "0",
    }
    fields |= {"originMsgId": sent.msg_id, "originTopic": topic, "unitMode": "false", "maxReconsumeTimes": "0"}
    with RemotingClient(cluster.brokers[0].address) as client:
        assert client.request(RequestCode.CONSUMER_SEND_MSG_BACK, fields).code == 0
    found = scrape(cluster.brokers[0].metrics_address)
    assert value(found, "rocketmq_send_to_dlq_messages_total", consumer_group=group) == 1


def test_each_name_of_rocketmq_5_that_a_broker_of_49_can_tell_is_there(cluster: EmbeddedCluster) -> None:
    found = scrape(cluster.brokers[0].metrics_address)
    for name in (
        "rocketmq_storage_size",
        "rocketmq_storage_message_reserve_time",
        "rocketmq_storage_flush_behind_bytes",
        "rocketmq_storage_dispatch_behind_bytes",
        "rocketmq_broker_permission",
        "rocketmq_topic_number",
        "rocketmq_consumer_group_number",
        "rocketmq_producer_connections",
    ):
        assert len(found.get(name, {})) == (0 if name == "rocketmq_producer_connections" else 1), name


def test_no_port_is_opened_unless_asked_for() -> None:
    with EmbeddedCluster() as running:
        assert running.brokers[0].metrics_address is None


def test_a_name_server_tells_whom_it_knows() -> None:
    now = 1_800_000_000_000
    with NameServer(NamesrvConfig(listen_port=0, metrics_port=0), now=lambda: now) as server:
        fields = {"brokerAddr": "10.0.0.1:10911", "brokerId": "0", "brokerName": "b", "clusterName": "C"}
        with RemotingClient(server.address) as client:
            assert client.request(RequestCode.REGISTER_BROKER, fields | {"haServerAddr": ""}).code == 0
            now += 7000
            found = scrape(server.metrics_address)
    silent = value(found, "rmqfast_name_server_broker_silent_seconds", broker="b", broker_id="0", cluster="C")
    assert (silent, value(found, "rmqfast_name_server_brokers")) == (7, 1)
    assert value(found, "rmqfast_name_server_topics") == 0
