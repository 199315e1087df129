"""Consumers of topics that are not there yet: the first messages are pulled."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from rmqfast import EmbeddedCluster, Message
from rmqfast.client.instance import ClientConfig
from rmqfast.client.lite_pull import LitePullConsumer
from rmqfast.client.producer import Producer
from rmqfast.client.push import PushConsumer
from tests.client.push.listening import Seen
from tests.waiting import PATIENCE


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as running:
        yield running


@pytest.fixture
def config(cluster: EmbeddedCluster) -> ClientConfig:
    """All that could bring the topic in another way comes in an hour."""
    hour = 3600.0
    return ClientConfig(
        name_server=cluster.name_server,
        poll_name_server_interval=hour,
        rebalance_interval=hour,
        heartbeat_interval=hour,
        request_timeout=PATIENCE,
    )


def test_a_push_consumer_that_came_first_gets_the_first_message(config: ClientConfig) -> None:
    seen = Seen()
    consumer = PushConsumer("first_push", config=config)
    consumer.register_message_listener(seen)
    consumer.subscribe("born_for_push", "*")
    with consumer, Producer("maker", config=config) as producer:
        producer.send(Message("born_for_push", b"first"))
        seen.wait(1)
    assert seen.bodies == [b"first"]


def test_a_lite_pull_consumer_that_came_first_gets_the_first_message(config: ClientConfig) -> None:
    consumer = LitePullConsumer("first_pull", config=config)
    consumer.subscribe("born_for_pull")
    with consumer, Producer("maker", config=config) as producer:
        producer.send(Message("born_for_pull", b"first"))
        assert [message.body for message in consumer.poll(PATIENCE)] == [b"first"]


FIRST = """
import sys
from rmqfast import Message, Producer
with Producer("quiet", name_server=sys.argv[1]) as producer:
    producer.send(Message("first_of_a_quiet_producer", b"x"))
"""


def test_what_goes_well_says_nothing_where_nobody_listens_to_logs(cluster: EmbeddedCluster) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST, cluster.name_server], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")
