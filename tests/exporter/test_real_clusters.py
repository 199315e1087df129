"""The exporter's figures are mqadmin's, on RocketMQ's brokers and ours."""

from __future__ import annotations

import re
import time

import pytest

from rmqfast import Admin, ClientConfig, LitePullConsumer, Message, Producer
from rmqfast.exporter import Exporter
from rmqfast.message import MessageQueue
from tests.broker.interop.cluster import Cluster
from tests.broker.interop.mqadmin import Admin as MqAdmin
from tests.metrics.reading import scrape, value
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
TOPIC, GROUP = "real_exported", "real_exporters"


def test_figures_are_those_that_mqadmin_prints(each_cluster: Cluster, mqadmin: MqAdmin) -> None:
    config = ClientConfig(name_server=each_cluster.name_server)
    with Admin(name_server=each_cluster.name_server, timeout=20) as admin:
        admin.create_topic(TOPIC, queues=2)
        with Producer("real_makers", name_server=each_cluster.name_server) as producer:
            for number in range(20):
                producer.send(Message(TOPIC, b"x" * 100), MessageQueue(TOPIC, "broker-a", number % 2))
        admin.create_group(GROUP)
        for queue_id in range(2):
            admin.offsets.reset(GROUP, MessageQueue(TOPIC, "broker-a", queue_id), 0)
        with LitePullConsumer(GROUP, name_server=each_cluster.name_server) as consumer:
            consumer.subscribe(TOPIC)
            got = 0
            while got < 20:
                got += len(consumer.poll(5))
            consumer.commit()
        for queue_id in range(2):
            admin.offsets.reset(GROUP, MessageQueue(TOPIC, "broker-a", queue_id), 7)
        stored = admin.messages.by_offset(MessageQueue(TOPIC, "broker-a", 0), 7).store_timestamp
        with Exporter(config, port=0, interval=1, timeout=20) as exporter:
            place = {"cluster": "DefaultCluster", "broker": "broker-a", "topic": TOPIC}
            until(
                lambda: (
                    value(scrape(exporter.address), "rocketmq_producer_offset", **place) == 20
                    and value(scrape(exporter.address), "rocketmq_consumer_offset", **place, group=GROUP) == 14
                    and value(scrape(exporter.address), "rmqfast_group_lag_seconds", topic=TOPIC, group=GROUP)
                ),
                lambda: scrape(exporter.address).keys(),
                patience=120,
            )
            found = scrape(exporter.address)
            seconds, now = value(found, "rmqfast_group_lag_seconds", topic=TOPIC, group=GROUP), time.time()
        status = admin.brokers.status("broker-a")
    printed = [line.split() for line in mqadmin(["topicStatus", "-t", TOPIC]).splitlines()]
    assert sum(int(words[3]) for words in printed if words[:1] == ["broker-a"]) == 20
    progress = mqadmin(["consumerProgress", "-g", GROUP])
    diff = re.search(r"Diff Total: (\d+)", progress)
    assert diff is not None, progress
    labels = {"group": GROUP, "topic": TOPIC, "msgModel": "1"}
    assert value(found, "rocketmq_group_diff", **labels) == int(diff[1]) == 6
    # RocketMQ's brokers tell the age, and not since when: it is as old as the answer took.
    assert seconds == pytest.approx(now - stored / 1000, abs=3)
    names = {"des": status["brokerVersionDesc"], "boottime": status["bootTimestamp"]}
    ends = [value(found, f"rocketmq_brokeruntime_commitlog_{each}offset", **names) for each in ("min", "max")]
    assert ends[0] == int(status["commitLogMinOffset"])
    assert ends[1] is not None
    assert ends[1] <= int(status["commitLogMaxOffset"])
    assert value(found, "rmqfast_exporter_questions_failed_total") == 0
