"""The numbers of the pages are mqadmin's, on RocketMQ's brokers and ours."""

from __future__ import annotations

import re

import pytest

from rmqfast import Admin, ClientConfig, Message, MessageQueue, Producer
from rmqfast.dashboard import Dashboard
from tests.admin.members import online, wants
from tests.broker.interop.cluster import Cluster
from tests.broker.interop.mqadmin import Admin as MqAdmin
from tests.waiting import until

from .conftest import PASSWORD
from .visitor import Visitor

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

TOPIC, GROUP = "shown", "viewers"
QUEUES = [MessageQueue(TOPIC, "broker-a", number) for number in range(3)]


def figures(text: str, first: str) -> list[list[str]]:
    """The words of the lines of a table that mqadmin printed, of which the first is `first`."""
    return [words for line in text.splitlines() if (words := line.split()) and words[0] == first]


def test_numbers_are_those_of_mqadmin(each_cluster: Cluster, mqadmin: MqAdmin) -> None:
    name_server = each_cluster.name_server
    with (
        Admin(name_server=name_server, timeout=20) as admin,
        Producer("painters", name_server=name_server) as producer,
    ):
        admin.create_topic(TOPIC, queues=3)
        for number in range(20):
            producer.send(Message(TOPIC, b"x"), QUEUES[number % 3])
        with online(name_server, "C1", GROUP, [wants(TOPIC, "*")], QUEUES):
            for queue in QUEUES:
                admin.offsets.reset(GROUP, queue, 2, force=True)
            config = ClientConfig(name_server=name_server)
            with Dashboard(config, port=0, password=PASSWORD, interval=1) as running:
                compare(running, mqadmin)


def compare(running: Dashboard, mqadmin: MqAdmin) -> None:
    with Visitor(running.address) as visitor:
        visitor.log_in(PASSWORD)
        until(lambda: GROUP in visitor.get("/groups.json").text, patience=120)
        queues = visitor.get(f"/topics/{TOPIC}.json").json["queues"]
        status = figures(mqadmin(["topicStatus", "-t", TOPIC]), "broker-a")
        assert [[str(row[key]) for key in ("broker", "queue", "first_offset", "end_offset")] for row in queues] == [
            words[:4] for words in status
        ]
        progress = mqadmin(["consumerProgress", "-g", GROUP])
        rows = [row for row in visitor.get(f"/groups/{GROUP}.json").json["queues"] if row["topic"] == TOPIC]
        keys = ("topic", "broker", "queue", "end_offset", "offset", "behind")
        assert [[str(row[key]) for key in keys] for row in rows] == [words[:6] for words in figures(progress, TOPIC)]
        total = re.search(r"Diff Total: (\d+)", progress)
        assert total is not None

        def is_total() -> bool:
            (row,) = [row for row in visitor.get("/groups.json").json["groups"] if row["group"] == GROUP]
            return [str(row["behind"]), row["members"]] == [total[1], 1]

        until(is_total, patience=60)
        (broker,) = visitor.get("/brokers.json").json["brokers"]
        (listed,) = figures(mqadmin(["clusterList"]), "DefaultCluster")
        assert [broker["cluster"], broker["broker"], broker["address"], broker["version"]] == [
            listed[0],
            listed[1],
            listed[3],
            listed[4],
        ]
        topics = {row["topic"] for row in visitor.get("/topics.json?all=1").json["topics"]}
        assert topics >= {line for line in mqadmin(["topicList"]).splitlines() if line in {TOPIC, f"%RETRY%{GROUP}"}}
