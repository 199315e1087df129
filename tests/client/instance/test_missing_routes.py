"""Consumers of topics that are not there yet: how often they are asked for, and that the first messages are pulled."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from rmqfast import EmbeddedCluster, Message
from rmqfast.client.instance import ClientConfig
from rmqfast.client.instance.members import Members
from rmqfast.client.instance.routes import LATER, SOON, MissingRoutes
from rmqfast.client.lite_pull import LitePullConsumer
from rmqfast.client.producer import Producer
from rmqfast.client.push import PushConsumer
from rmqfast.errors import ClientError
from rmqfast.message import MessageQueue
from tests.client.instance.doubles import FakeConsumer
from tests.client.push.listening import Seen
from tests.waiting import PATIENCE


class NameServer:
    """Notes what it is asked for, and has some topics."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.topics: set[str] = set()
        self.is_there = True

    def update(self, topic: str) -> bool:
        self.asked.append(topic)
        if not self.is_there:
            raise ClientError("no name server answers")
        return topic in self.topics


def test_only_topics_without_queues_are_asked_for_and_less_often_after_a_minute() -> None:
    members, names, now = Members(), NameServer(), [0.0]
    consumer = FakeConsumer("g", "there", "missing", "%RETRY%g")
    consumer.queues["there"] = [MessageQueue("there", "b", 0)]
    members.add_consumer("g", consumer)
    routes = MissingRoutes(members, names.update, clock=lambda: now[0])
    assert [routes.look() for _ in range(3)] == [False] * 3
    assert names.asked == ["missing"] * 3
    now[0] = SOON
    names.asked.clear()
    assert not any(routes.look() for _ in range(2 * LATER))
    assert names.asked == ["missing"] * 2
    names.topics.add("missing")
    assert [routes.look() for _ in range(LATER)].count(True) == 1
    consumer.queues["missing"] = [MessageQueue("missing", "b", 0)]
    names.asked.clear()
    assert not any(routes.look() for _ in range(2 * LATER))
    assert names.asked == []


def test_a_name_server_that_does_not_answer_is_asked_once_a_look() -> None:
    members, names = Members(), NameServer()
    names.is_there = False
    members.add_consumer("g", FakeConsumer("g", "one", "two"))
    assert not MissingRoutes(members, names.update).look()
    assert names.asked == ["one"]


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
