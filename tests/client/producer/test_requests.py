"""Requests and their replies, by way of a broker in this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from rmqfast import EmbeddedCluster, Message, MessageQueue
from rmqfast.admin import Admin
from rmqfast.client.instance import ClientConfig
from rmqfast.client.instance.request_futures import RequestFutures
from rmqfast.client.producer import Producer, QueueSelector, create_reply_message
from rmqfast.client.producer.requests import request, request_async
from rmqfast.client.pull import PullConsumer
from rmqfast.client.push import ConsumeConcurrentlyStatus, PushConsumer, PushOptions
from rmqfast.errors import ArgumentError, ClientError, RequestTimeoutError, RmqError
from tests.client.awaited import Face
from tests.waiting import PATIENCE, until

TOPIC = "questions"


def select(number: int) -> QueueSelector:
    return lambda queues, _message, _argument: queues[number]


class Replier:
    """Replies to each message."""

    def __init__(self, face: Face, name_server: str) -> None:
        self.asked: list[Any] = []
        self.producer = face(Producer)("repliers", name_server=name_server, instance_name="replier")
        config = ClientConfig(name_server=name_server, instance_name="replier", rebalance_interval=0.3)
        self.consumer = face(PushConsumer)("repliers", config=config, options=PushOptions(pull_suspend_millis=2000))
        self.consumer.subscribe(TOPIC, "*")
        self.consumer.register_message_listener(self.listen)

    def listen(self, messages: Sequence[Any], _context: object) -> ConsumeConcurrentlyStatus:
        for message in messages:
            self.asked.append(message)
            if message.body == b"compress":
                self.producer.send(create_reply_message(message, b"large" * 10_000))
            else:
                self.producer.send(create_reply_message(message, b"reply to " + message.body))
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


@pytest.fixture(scope="module")
def cluster(face: Face) -> Iterator[EmbeddedCluster]:
    del face  # each has a cluster of its own, in which nobody has asked yet
    with EmbeddedCluster() as running:
        with Admin(name_server=running.name_server) as admin:
            admin.create_topic(TOPIC, queues=2)
        yield running


@pytest.fixture(scope="module")
def replier(face: Face, cluster: EmbeddedCluster) -> Iterator[Replier]:
    made = Replier(face, cluster.name_server)
    with made.producer, made.consumer:
        yield made


@pytest.fixture(scope="module")
def producer(make: type[Producer], cluster: EmbeddedCluster) -> Iterator[Producer]:
    with make("askers", name_server=cluster.name_server, instance_name="asker") as running:
        yield running


def test_who_asks_gets_the_reply(producer: Producer, replier: Replier) -> None:
    before = int(time.time() * 1000)
    reply = producer.request(Message(TOPIC, b"how much?", "TagA", "k1", {"own": "1"}), timeout=PATIENCE)
    asked = next(message for message in replier.asked if message.body == b"how much?")
    assert (reply.topic, reply.body) == ("DefaultCluster_REPLY_TOPIC", b"reply to how much?")
    assert asked.properties["REPLY_TO_CLIENT"] == producer.client_id
    assert (asked.properties["TTL"], asked.tags, asked.keys, asked.properties["own"]) == ("60000", "TagA", "k1", "1")
    taken = {name: asked.properties[name] for name in ("CORRELATION_ID", "REPLY_TO_CLIENT", "TTL")}
    assert taken.items() <= reply.properties.items()
    assert reply.properties["MSG_TYPE"] == "reply"
    times = [int(reply.properties[name]) for name in ("PUSH_REPLY_TIME", "ARRIVE_TIME")]
    assert before <= times[0] <= times[1]


def test_a_reply_that_was_compressed_is_read(producer: Producer, replier: Replier) -> None:
    assert producer.request(Message(TOPIC, b"compress"), timeout=PATIENCE).body == b"large" * 10_000
    assert replier.asked[-1].body == b"compress"


def test_many_ask_at_once_and_each_gets_its_own_reply(producer: Producer, replier: Replier) -> None:
    replies: dict[int, bytes | None] = {}

    def ask(number: int) -> None:
        for n in range(number, number + 10):
            replies[n] = producer.request(Message(TOPIC, b"%d" % n), timeout=PATIENCE).body

    threads = [threading.Thread(target=ask, args=(10 * n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replies == {n: b"reply to %d" % n for n in range(80)}
    assert len(replier.asked) >= 80


def test_a_request_goes_to_the_queue_that_is_chosen(producer: Producer, replier: Replier) -> None:
    for number in (0, 1):
        queue = MessageQueue(TOPIC, "broker-a", number)
        assert producer.request(Message(TOPIC, b"chosen"), queue, PATIENCE).body == b"reply to chosen"
        assert replier.asked[-1].queue_id == number
    second = select(1)
    assert producer.request(Message(TOPIC, b"selected"), timeout=PATIENCE, selector=second).body == b"reply to selected"
    assert replier.asked[-1].queue_id == 1
    with pytest.raises(ArgumentError, match="got both"):
        producer.request(Message(TOPIC, b"x"), queue, selector=second)


def test_where_nobody_replies_the_time_ends_it() -> None:
    futures, sent = RequestFutures(), list[Any]()

    def send(*how: Any) -> None:
        sent.append(how)

    with pytest.raises(RequestTimeoutError, match=f"<{TOPIC}>.* 10 ms") as caught:
        request(send, futures, "me", TOPIC, 0.01)
    assert caught.value.response_code == 10006
    assert isinstance(caught.value, TimeoutError)
    ((added, _, timeout),) = sent
    assert (dict(added)["REPLY_TO_CLIENT"], dict(added)["TTL"], timeout) == ("me", "10", 0.01)
    assert len(futures) == 0


def test_what_cannot_be_sent_is_forgotten() -> None:
    def send(*_: Any) -> None:
        raise ArgumentError("no such message")

    futures, ended = RequestFutures(), list[Any]()
    with pytest.raises(ArgumentError):
        request(send, futures, "me", TOPIC, PATIENCE)
    with pytest.raises(ArgumentError):
        request_async(send, futures, "me", TOPIC, PATIENCE, ended.append)
    assert len(futures) == 0
    assert ended == []


def test_who_does_not_wait_is_called_once(make: type[Producer], producer: Producer, replier: Replier) -> None:
    ended: list[bytes | None] = []
    asks_on = make is Producer  # a callback on a loop must not wait

    def done(outcome: Any) -> None:
        ended.append(outcome.body)
        if asks_on and outcome.body == b"reply to first":
            ended.append(producer.request(Message(TOPIC, b"nested"), timeout=PATIENCE).body)

    for number, question in enumerate((b"first", b"last"), asks_on):
        producer.request_async(Message(TOPIC, question), done, timeout=PATIENCE)
        until(lambda number=number: len(ended) > number)  # type: ignore[misc]
    assert ended == [b"reply to first", *[b"reply to nested"] * asks_on, b"reply to last"]


def test_what_cannot_be_sent_is_said_and_nobody_waits(make: type[Producer]) -> None:
    with EmbeddedCluster() as cluster:
        producer = make("unsent", name_server=cluster.name_server, instance_name="unsent")
        with producer:
            with pytest.raises(ClientError, match="message body"):
                producer.request(Message(TOPIC, b""))
            producer.send(Message(TOPIC, b"x"))
            cluster.brokers[0].stop()
            ended: list[Any] = []
            with pytest.raises(ClientError) as caught:
                producer.request(Message(TOPIC, b"x"), timeout=PATIENCE)
            assert str(caught.value).startswith(f"send request message to <{TOPIC}> fail\n")
            assert isinstance(caught.value.__cause__, RmqError)
            producer.request_async(Message(TOPIC, b"x"), ended.append, timeout=PATIENCE)
            until(lambda: ended)
            assert str(ended[0]).startswith(f"send request message to <{TOPIC}> fail\n")


def test_a_reply_to_nobody_is_an_error_of_the_one_who_replies(cluster: EmbeddedCluster, producer: Producer) -> None:
    asked = {"CLUSTER": "DefaultCluster", "CORRELATION_ID": "7", "REPLY_TO_CLIENT": "nobody", "TTL": "3000"}
    reply = create_reply_message(SimpleNamespace(properties=asked), b"late")
    with pytest.raises(ClientError, match=r"push reply message fail, channel of <nobody> not found\."):
        producer.send(reply)
    with pytest.raises(RmqError, match=r"channel of <nobody> not found\."):
        producer.send_async(reply).result(PATIENCE)
    producer.send_oneway(reply)
    with PullConsumer("readers", name_server=cluster.name_server) as consumer:
        (queue,) = consumer.fetch_subscribe_message_queues(reply.topic)
        assert consumer.max_offset(queue) >= 2  # as 4.9.4: it is kept all the same


def test_a_reply_needs_what_the_broker_said_of_the_request() -> None:
    with pytest.raises(ClientError) as caught:
        create_reply_message(SimpleNamespace(properties={"CORRELATION_ID": "7"}), b"x")
    assert str(caught.value).startswith("create reply message fail, requestMessage error, property[CLUSTER] is null.")
    assert caught.value.response_code == 10007
    with pytest.raises(ClientError, match="requestMessage cannot be null"):
        create_reply_message(None, b"x")  # type: ignore[arg-type]
    partial = create_reply_message(SimpleNamespace(properties={"CLUSTER": "c"}), b"x")
    assert (partial.topic, partial.properties) == ("c_REPLY_TOPIC", {"MSG_TYPE": "reply"})
