"""Errors of asyncio clients, where a method has its own code there; all others ask their twin, errors and all."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import rmqfast
from rmqfast import EmbeddedCluster, Message, MessageQueue, aio
from rmqfast.errors import RequestTimeoutError, RmqError
from tests.waiting import PATIENCE

from .loops import run

Call = Callable[[Any], Any]
QUEUE, NO_BROKER = MessageQueue("t", "broker-a", 0), MessageQueue("t", "none", 0)
#: Calls that fail, of either twin; the topic `t` is there, with one broker.
WRONG: dict[str, dict[str, Call]] = {
    "Producer": {
        "no body": lambda one: one.send(Message("t", b"")),
        "a property": lambda one: one.send(Message("t", b"x", properties={"a": "1\x02b"})),
        "no queue chosen": lambda one: one.send(Message("t", b"x"), selector=lambda *_: None),
        "a broker that is not": lambda one: one.send(Message("t", b"x"), NO_BROKER),
        "a queue that is not": lambda one: one.send(Message("t", b"x"), MessageQueue("t", "broker-a", 99)),
        "a request, no body": lambda one: one.request(Message("t", b"")),
        "no batch": lambda one: one.send_batch([]),
        "no one batch": lambda one: one.send_batch([Message("t", b"x"), Message("u", b"x")]),
        "no time": lambda one: one.send(Message("t", b"x"), timeout=-1.0),
        "no time for a queue": lambda one: one.send(Message("t", b"x"), QUEUE, -1.0),
    },
    "PullConsumer": {
        "no offset": lambda one: one.pull(QUEUE, "*", -1, 1),
        "no queue": lambda one: one.pull(None, "*", 0, 1),
        "a broker that is not": lambda one: one.pull(NO_BROKER, "*", 0, 1),
        "a topic that is not": lambda one: one.pull(MessageQueue("nowhere", "broker-a", 0), "*", 0, 1),
        "no offset to wait at": lambda one: one.pull_block_if_not_found(QUEUE, "*", -1, 1),
        "what its twin is asked": lambda one: one.fetch_subscribe_message_queues("nowhere"),
    },
    "LitePullConsumer": {
        "no time": lambda one: one.poll(-1.0),
        "no time for rows": lambda one: one.poll_arrow(-1.0),
        "no column": lambda one: one.poll_arrow(0.0, ["none"]),
        "no listener": lambda one: one.register_topic_message_queue_change_listener("t", None),
    },
}


async def told(work: Awaitable[Any]) -> tuple[type[RmqError], str, int | None]:
    """What an error says, without what no two have alike."""
    with pytest.raises(RmqError) as raised:
        await work
    text = re.sub(r"cost \[\d+\]ms|Producer: [\d.:]+", "~", str(raised.value))
    return type(raised.value), text, getattr(raised.value, "response_code", None)


async def compare(asynchronous: Any, blocking: Any, calls: dict[str, Call]) -> None:
    for what, call in calls.items():
        expected = await told(asyncio.to_thread(call, blocking))
        assert await told(call(asynchronous)) == expected, what


@pytest.mark.parametrize("kind", WRONG)
def test_what_fails_is_told_in_the_words_of_the_blocking_twin(kind: str, cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        asynchronous = getattr(aio, kind)("words", name_server=cluster.name_server, instance_name="aio")
        blocking = getattr(rmqfast, kind)("words", name_server=cluster.name_server, instance_name="blocking")
        calls = WRONG[kind]
        await compare(asynchronous, blocking, calls)
        calls = {**calls, "once more": lambda one: one.start()}
        async with asynchronous:
            with blocking:
                await compare(asynchronous, blocking, calls)
        await compare(asynchronous, blocking, calls)

    with rmqfast.Producer("makes", name_server=cluster.name_server) as producer:
        producer.send(Message("t", b"x"))
    run(main())


def test_a_push_consumer_that_cannot_start_says_why_as_the_blocking_one(cluster: EmbeddedCluster) -> None:
    calls: dict[str, Call] = {
        "no topic": lambda one: one.subscribe(""),
        "no tag": lambda one: one.subscribe("t", "||"),
        "no listener": lambda one: one.register_message_listener(7),
        "nothing to do": lambda one: one.start(),
    }
    asynchronous = aio.PushConsumer("wrong", name_server=cluster.name_server)
    blocking = rmqfast.PushConsumer("wrong", name_server=cluster.name_server)
    run(compare(asynchronous, blocking, calls))


def test_where_no_broker_is_left_the_sends_that_were_tried_are_counted(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        async with aio.Producer("counts", name_server=rmqfast_cluster.name_server) as producer:
            await producer.send(Message("t", b"x"))
            rmqfast_cluster.stop()
            _, text, _ = await told(producer.send(Message("t", b"x"), timeout=PATIENCE))
            assert "Send [3] times" in text
            assert "[broker-a, broker-a, broker-a]" in text

    run(main())


def test_a_request_that_nobody_replies_to_ends_as_that_of_the_blocking_producer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a broker: a send may take longer than a short time, and fail otherwise."""

    async def main() -> None:
        asynchronous = aio.Producer("silence", name_server="127.0.0.1:1")
        with pytest.raises(RequestTimeoutError, match=r"<unheard>.* 500 ms"):
            await asynchronous.request(Message("unheard", b"x"), timeout=0.5)
        await asynchronous.shutdown()

    def over(_producer: object, _message: Message, on_done: Callable[[Any], object], *_: Any, **_named: Any) -> None:
        on_done(RequestTimeoutError("request timeout, no reply message."))

    monkeypatch.setattr(rmqfast.Producer, "request_async", over)
    run(main())
