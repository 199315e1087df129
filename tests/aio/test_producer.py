"""Producers of asyncio against a broker in this process; what was stored is read from its store."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import rmqfast
from rmqfast import EmbeddedCluster, Message, MessageQueue, aio, open_store
from rmqfast.aio.producer import _IN_A_TURN, LARGE
from rmqfast.client.producer import ProducerOptions, SendContext, SendStatus
from rmqfast.errors import ClientError, RemotingTimeoutError, RequestTimeoutError
from tests.proxy import gated
from tests.waiting import PATIENCE, until_async

from .loops import run, threads_of_loops


def stored(cluster: EmbeddedCluster, topic: str) -> list[dict[str, Any]]:
    """The messages of a topic as the store has them, queue by queue."""
    rows = open_store(cluster.brokers[0].state.root).scan(topic).to_arrow().to_pylist()
    return sorted(rows, key=lambda row: (row["queue_id"], row["queue_offset"]))


class Before:
    """A hook that has a function called before each send."""

    name = "before"

    def __init__(self, call: Callable[[SendContext], object]) -> None:
        self._call = call

    def before(self, context: SendContext) -> None:
        self._call(context)

    def after(self, context: SendContext) -> None:
        """Nothing is to be told."""


def test_a_thousand_sends_at_once_take_no_thread_and_leave_other_tasks_their_turns(cluster: EmbeddedCluster) -> None:
    async def watch_turns() -> None:
        seen = 0
        while len(begun) < 1000:
            begun_in_a_turn.append(len(begun) - seen)
            seen = len(begun)
            await asyncio.sleep(0)

    async def main() -> None:
        with gated(cluster) as (gate, config):
            async with aio.Producer("thousand", config=config) as producer:
                await producer.send(Message("thousand", b"first"))
                await producer.register_send_hook(Before(begun.append))
                gate.shut()
                before = threads_of_loops()
                watching = asyncio.create_task(watch_turns())
                tasks = [
                    asyncio.create_task(producer.send(Message("thousand", b"%d" % n), timeout=PATIENCE))
                    for n in range(1000)
                ]
                await until_async(lambda: producer.in_flight == 1000)
                assert threads_of_loops() <= before
                gate.open()
                results = await asyncio.gather(*tasks)
                await watching
        assert max(begun_in_a_turn) <= _IN_A_TURN
        rows = [row for row in stored(cluster, "thousand") if row["body"] != b"first"]
        assert {result.msg_id for result in results} == {row["msg_id"] for row in rows}
        assert len(rows) == 1000

    begun, begun_in_a_turn = list[SendContext](), list[int]()
    run(main())


def test_an_exception_of_a_hook_or_selector_leaves_all_room_free(cluster: EmbeddedCluster) -> None:
    class StopError(BaseException):
        pass

    def stop(*_: object) -> MessageQueue:
        raise StopError

    async def main() -> None:
        async with aio.Producer("stopped", name_server=cluster.name_server) as producer:
            await producer.send(Message("stopped", b"first"))
            with pytest.raises(StopError):
                await producer.send(Message("stopped", b"selected"), selector=stop)
            await producer.register_send_hook(Before(stop))
            with pytest.raises(StopError):
                await producer.send(Message("stopped", b"hooked"))
            assert producer.in_flight == 0

    run(main())


def test_what_takes_long_to_compress_is_prepared_beside_the_loop(cluster: EmbeddedCluster) -> None:
    def choose(queues: Sequence[MessageQueue], _message: Message, threads: list[threading.Thread]) -> MessageQueue:
        threads.append(threading.current_thread())
        return queues[0]

    async def main() -> None:
        async with aio.Producer("large", name_server=cluster.name_server) as producer:
            await producer.send(Message("large", b"first"))
            small, large = list[threading.Thread](), list[threading.Thread]()
            await producer.send(Message("large", b"s" * (LARGE - 1)), selector=choose, argument=small)
            await producer.send(Message("large", b"l" * LARGE), selector=choose, argument=large)
        assert small == [threading.main_thread()]
        assert [thread.name.startswith("rmqfast-aio") for thread in large] == [True]

    run(main())


def test_no_more_is_on_its_way_than_may_be_and_all_arrives(cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        with gated(cluster) as (gate, config):
            async with aio.Producer("pressed", config=config, options=options) as producer:
                await producer.send(Message("pressed", b"first"))
                await producer.register_send_hook(Before(lambda _: on_their_way.append(producer.in_flight)))
                gate.shut()
                sends = [producer.send_async(Message("pressed", b"%d" % n), timeout=PATIENCE) for n in range(300)]
                await until_async(lambda: producer.in_flight == 3)
                gate.open()
                await asyncio.gather(*sends)
        assert max(on_their_way) == 3

    options, on_their_way = ProducerOptions(max_in_flight=3), list[int]()
    run(main())
    assert len(stored(cluster, "pressed")) == 301


def test_where_there_never_is_room_the_time_is_over_some_day(cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        options = ProducerOptions(max_in_flight=1)
        with gated(cluster) as (gate, config):
            async with aio.Producer("full", config=config, options=options) as producer:
                await producer.send(Message("full", b"first"))
                gate.shut()
                first = producer.send_async(Message("full", b"waits"), timeout=PATIENCE)
                queue = (await producer.fetch_publish_message_queues("full"))[0]
                await until_async(lambda: producer.in_flight == 1)
                with pytest.raises(RemotingTimeoutError, match="semaphoreAsync timeout"):
                    await producer.send(Message("full", b"no room"), queue, timeout=0.05)
                gate.open()
                assert (await first).status is SendStatus.SEND_OK

    run(main())


def test_a_send_that_is_cancelled_harms_no_other_one(
    cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        with gated(cluster) as (gate, config):
            async with aio.Producer("cancelled", config=config) as producer:
                await producer.send(Message("cancelled", b"first"))
                gate.shut()
                tasks = [
                    asyncio.create_task(producer.send(Message("cancelled", b"%d" % n), timeout=PATIENCE))
                    for n in range(9)
                ]
                await until_async(lambda: producer.in_flight == 9)
                for task in tasks[::2]:
                    task.cancel()
                await asyncio.sleep(0)
                assert [task.cancelled() for task in tasks] == [True, False] * 4 + [True]
                given_up = asyncio.create_task(producer.send(Message("cancelled", b"given up"), timeout=PATIENCE))
                await until_async(lambda: producer.in_flight == 10)
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(given_up, 0.01)
                gate.open()
                assert [(await task).status for task in tasks[1::2]] == [SendStatus.SEND_OK] * 4
                await until_async(lambda: producer.in_flight == 0)

    with caplog.at_level(logging.ERROR):
        run(main())
    assert not caplog.records
    assert len(stored(cluster, "cancelled")) == 11


def test_an_answer_that_comes_after_the_end_of_the_loop_harms_nobody(
    cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> aio.Producer:
        producer = aio.Producer("late", config=config)
        await producer.start()
        await producer.send(Message("late", b"first"))
        gate.shut()
        producer.send_async(Message("late", b"second"), timeout=PATIENCE)
        await until_async(lambda: producer.in_flight == 1)
        return producer

    with caplog.at_level(logging.ERROR), gated(cluster) as (gate, config):
        producer = run(main())  # which cancels what is not awaited
        gate.open()
        run(until_async(lambda: producer.in_flight == 0))
        run(producer.shutdown())  # its own loop is closed
    assert not caplog.records
    assert len(stored(cluster, "late")) == 2


def test_a_request_is_awaited_until_somebody_replies(cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        # it is called on the loop: if a request held that up, nobody would reply
        async def reply(messages: Sequence[rmqfast.MessageView], _context: Any) -> Any:
            for message in messages:
                if message.body == b"say nothing":
                    is_asked.set()
                else:
                    await producer.send(rmqfast.create_reply_message(message, b"re: " + (message.body or b"")))
            return rmqfast.ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        producer = aio.Producer("asks", name_server=cluster.name_server)
        consumer = aio.PushConsumer("replies", name_server=cluster.name_server)
        await consumer.subscribe("questions")
        await consumer.register_message_listener(reply)
        is_asked = asyncio.Event()
        async with producer:
            await producer.create_topic("questions", 2)
            async with consumer:
                asked = [producer.request(Message("questions", b"%d" % n), timeout=PATIENCE) for n in range(50)]
                assert [each.body for each in await asyncio.gather(*asked)] == [b"re: %d" % n for n in range(50)]
                given_up = asyncio.create_task(producer.request(Message("questions", b"say nothing"), timeout=PATIENCE))
                await is_asked.wait()
                given_up.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await given_up

    run(main())


def test_where_no_broker_is_left_the_sends_that_were_tried_are_counted(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        async with aio.Producer("counts", name_server=rmqfast_cluster.name_server) as producer:
            await producer.send(Message("t", b"x"))
            rmqfast_cluster.stop()
            with pytest.raises(ClientError, match=r"Send \[3\] times.*\[broker-a, broker-a, broker-a\]"):
                await producer.send(Message("t", b"x"), timeout=PATIENCE)

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
