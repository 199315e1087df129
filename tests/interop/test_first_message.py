"""Our broker refuses no pull of consumers with tags, also not the first ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.broker.interop.cluster import OurCluster

from .rocketmq import create_topic, java

TOPIC, MESSAGES, STARTS, CLIENT = "first_message", 40, 24, "5.3.3"


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("tag", ["*", "kept"])
def test_no_pull_of_a_consumer_of_tags_is_refused(tmp_path: Path, tag: str) -> None:
    """Each start is a group and a client of its own, of a topic that has messages.

    A second after its start a client rebalances, which raises the version of its subscription. The heartbeat of the
    rebalance is left out while another one is in flight; until the next one RocketMQ's broker refuses its pulls.
    """
    with OurCluster(tmp_path / "mq") as cluster:
        create_topic(cluster.broker, TOPIC, 1)
        to = ("--namesrv", cluster.name_server, "--topic", TOPIC)
        java(CLIENT, "Produce", *to, "--count", MESSAGES, *(() if tag == "*" else ("--tags", tag)))
        words = ("--prefix", "first_message_", "--expr", tag, "--first", 0, "--starts", STARTS, "--together", 4)
        rows = [json.loads(line) for line in java(CLIENT, "FirstMessage", *to, *words, heap="-Xmx512m").splitlines()]
    assert [row["refused"] for row in rows] == [0] * STARTS
    assert all(row["firstMessage"] is not None for row in rows)
