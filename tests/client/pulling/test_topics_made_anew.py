"""Members that are online while their topic is deleted and made anew."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from rmqfast import EmbeddedCluster, LitePullConsumer, Message, MessageQueue, Producer
from rmqfast._native import MessageView
from rmqfast.admin import Admin
from rmqfast.client.consumer import ConsumeFromWhere
from rmqfast.client.instance import ClientConfig
from rmqfast.client.lite_pull import LitePullOptions
from rmqfast.client.push import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus, PushConsumer
from tests.client.push.listening import SHORT
from tests.waiting import collect, until

QUEUE = MessageQueue("orders", "broker-a", 0)
#: The bodies that a member has got, after so many.
Receive = Callable[[int], list[str]]


def config_of(name_server: str) -> ClientConfig:
    return ClientConfig(name_server=name_server, poll_name_server_interval=1, rebalance_interval=1)


@contextmanager
def lite_member(name_server: str) -> Iterator[Receive]:
    options = LitePullOptions(consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, broker_suspend=0.5)
    got: list[str] = []
    with LitePullConsumer("g", config=config_of(name_server), options=options) as consumer:
        consumer.subscribe("orders")

        def receive(count: int) -> list[str]:
            if count > len(got):
                messages = collect(lambda: consumer.poll(timeout=0.2), count - len(got))
                got.extend((message.body or b"").decode() for message in messages)
            return got

        yield receive


@contextmanager
def push_member(name_server: str, *, orderly: bool) -> Iterator[Receive]:
    got: list[str] = []

    def listen(messages: Sequence[MessageView], _context: Any) -> Any:
        got.extend((message.body or b"").decode() for message in messages)
        return ConsumeOrderlyStatus.SUCCESS if orderly else ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer = PushConsumer(
        "g",
        config=config_of(name_server),
        consume_from_where="CONSUME_FROM_FIRST_OFFSET",
        pull_suspend_millis=500,
        timings=SHORT,
    )
    consumer.subscribe("orders")
    consumer.register_message_listener(listen, orderly=orderly)
    with consumer:

        def receive(count: int) -> list[str]:
            until(lambda: len(got) >= count, lambda: f"{count} messages, got {len(got)}")
            return got

        yield receive


MEMBERS: dict[str, Callable[[str], Any]] = {
    "lite": lite_member,
    "concurrent": lambda name_server: push_member(name_server, orderly=False),
    "orderly": lambda name_server: push_member(name_server, orderly=True),
}


@pytest.mark.parametrize("kind", MEMBERS)
def test_a_member_reads_a_topic_that_is_made_anew_from_its_first_message(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    with ExitStack() as stack:
        name_server = stack.enter_context(EmbeddedCluster()).name_server
        admin = stack.enter_context(Admin(name_server=name_server))
        producer = stack.enter_context(Producer("p", name_server=name_server))

        def send(life: str, count: int) -> list[str]:
            bodies = [f"{life}-{number}" for number in range(count)]
            for body in bodies:
                producer.send(Message("orders", body.encode()), QUEUE)
            return bodies

        admin.topics.create("orders", queues=1)
        receive = stack.enter_context(MEMBERS[kind](name_server))
        expected = send("first", 20)
        assert sorted(receive(20)) == sorted(expected)
        caplog.set_level(logging.WARNING)
        admin.topics.delete("orders")
        admin.topics.create("orders", queues=1)
        expected += send("second", 3)
        assert sorted(receive(23)) == sorted(expected)
        expected += send("more", 30)
        assert sorted(receive(53)) == sorted(expected)
        assert "goes on at 0" in caplog.text


@pytest.mark.parametrize("kind", MEMBERS)
def test_a_member_that_starts_behind_the_end_goes_on_there_and_says_what_it_passes_over(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with ExitStack() as stack:
        name_server = stack.enter_context(EmbeddedCluster()).name_server
        admin = stack.enter_context(Admin(name_server=name_server))
        producer = stack.enter_context(Producer("p", name_server=name_server))
        admin.topics.create("orders", queues=1)
        for number in range(3):
            producer.send(Message("orders", f"before-{number}".encode()), QUEUE)
        # as 4.9.4 keeps it of a topic that was deleted
        admin.offsets.reset("g", QUEUE, 20, force=True)
        receive = stack.enter_context(MEMBERS[kind](name_server))
        received = stack.enter_context(ThreadPoolExecutor(1)).submit(receive, 1)
        until(lambda: "goes on at 3, where the broker says, past 3 messages" in caplog.text, lambda: caplog.text)
        producer.send(Message("orders", b"after"), QUEUE)
        assert received.result() == ["after"]
    assert "does not have the offset 20, but 0 to 3" in caplog.text
