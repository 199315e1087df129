"""Requests and replies between Java's clients and these, on RocketMQ's brokers and on ours."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from subprocess import Popen
from typing import Any

import pytest

from rmqfast import ConsumeConcurrentlyStatus, Message, PushConsumer, create_reply_message
from rmqfast.admin import Admin
from rmqfast.client.producer import Producer
from rmqfast.errors import RequestTimeoutError
from tests.broker.interop.cluster import Cluster
from tests.interop.rocketmq import running
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.soak, pytest.mark.timeout(500)]

OURS, JAVAS = "asked_of_us", "asked_of_java"


@pytest.fixture(scope="module", autouse=True)
def topics(each_cluster: Cluster) -> None:
    with Admin(name_server=each_cluster.name_server, timeout=20) as admin:
        for topic in (OURS, JAVAS, "deaf"):
            admin.create_topic(topic, queues=1)


@pytest.fixture(scope="module")
def javas(each_cluster: Cluster) -> Iterator[Popen[str]]:
    words = ["RequestReply", "--namesrv", each_cluster.name_server, "--replies", JAVAS]
    with running("4.9.4", *words, log=each_cluster.directory / "java.log") as process:
        assert told(process, "ready")
        yield process


@pytest.fixture(scope="module")
def producer(each_cluster: Cluster) -> Iterator[Producer]:
    with Producer("requests", name_server=each_cluster.name_server) as started:
        yield started


def told(process: Popen[str], *kinds: str) -> dict[str, Any]:
    """The next line of such a kind that the program prints."""
    assert process.stdout is not None
    for line in process.stdout:
        row: dict[str, Any] = json.loads(line)
        if row["kind"] in kinds:
            return row
    raise AssertionError("the program ended")


def ask(process: Popen[str], topic: str, body: str, seconds: float) -> dict[str, Any]:
    """What Java gets as a reply."""
    assert process.stdin is not None
    process.stdin.write(json.dumps({"topic": topic, "body": body, "timeout": int(seconds * 1000)}) + "\n")
    process.stdin.flush()
    return told(process, "reply", "error")


def test_java_replies_to_what_is_asked_here(javas: Popen[str], producer: Producer) -> None:
    replies = [producer.request(Message(JAVAS, b"question %d" % n), timeout=60) for n in range(3)]
    assert [reply.body for reply in replies] == [b"java: question %d" % n for n in range(3)]
    for reply in replies:
        row = told(javas, "asked")
        assert row["status"] == "SEND_OK"
        asked = row["properties"]
        assert (asked["REPLY_TO_CLIENT"], asked["TTL"]) == (producer.client_id, "60000")
        taken = {name: asked[name] for name in ("CORRELATION_ID", "REPLY_TO_CLIENT", "TTL")}
        assert taken.items() <= reply.properties.items()
        assert reply.properties["MSG_TYPE"] == "reply"
        assert reply.born_host.startswith("127.0.0.1:")


def test_what_java_asks_is_replied_to_here(each_cluster: Cluster, javas: Popen[str], producer: Producer) -> None:
    replied: list[Any] = []
    consumer = PushConsumer("our_repliers", name_server=each_cluster.name_server)

    def listen(messages: Sequence[Any], _context: object) -> ConsumeConcurrentlyStatus:
        for message in messages:
            large = b"!" * 10_000 if message.body == b"large" else b""
            replied.append(producer.send(create_reply_message(message, b"ours: " + message.body + large)))
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer.subscribe(OURS, "*")
    consumer.register_message_listener(listen)
    with consumer:
        rows = [ask(javas, OURS, body, 60) for body in ("first", "second", "large")]
        until(lambda: len(replied) == 3)  # the broker pushes a reply before it answers
    assert [row.get("body") for row in rows] == ["ours: first", "ours: second", "ours: large" + "!" * 10_000]
    assert {"ARRIVE_TIME", "CORRELATION_ID", "MSG_TYPE", "PUSH_REPLY_TIME"} <= rows[0]["properties"].keys()
    assert [str(result.status) for result in replied] == ["SEND_OK"] * 3


def test_where_nobody_replies_both_say_the_same(javas: Popen[str], producer: Producer) -> None:
    row = ask(javas, "deaf", "anybody?", 1.5)
    assert row["exception"] == "RequestTimeoutException"
    with pytest.raises(RequestTimeoutError) as caught:
        producer.request(Message("deaf", b"anybody?"), timeout=1.5)
    said = str(caught.value).splitlines()[0]
    assert row["message"].startswith(f"CODE: {caught.value.response_code}  DESC: {said}")
