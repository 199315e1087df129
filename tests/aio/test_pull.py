"""Pull consumers of asyncio: what a loop adds. `tests/client/pull` has what they pull."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import rmqfast
from rmqfast import EmbeddedCluster, Message, MessageQueue, PullResult, PullStatus, aio
from rmqfast.client.consumer import ReadOffsetType
from rmqfast.client.instance import ClientConfig
from rmqfast.client.pull import PullOptions
from rmqfast.errors import RemotingTimeoutError, RmqError
from tests.waiting import until_async

from .loops import gated, run
from .test_lite_pull import threads_of_loops, turns


async def filled(cluster: EmbeddedCluster, topic: str, count: int) -> MessageQueue:
    async with aio.Producer("fills", name_server=cluster.name_server) as producer:
        await producer.create_topic(topic, 1)
        (queue,) = await producer.fetch_publish_message_queues(topic)
        for n in range(count):
            await producer.send(Message(topic, b"%d" % n, tags=f"t{n % 2}"), queue)
    return queue


def test_queues_are_pulled_and_offsets_kept(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        queue = await filled(rmqfast_cluster, "pulled", 6)
        async with aio.PullConsumer("pulls", name_server=rmqfast_cluster.name_server) as consumer:
            assert await consumer.fetch_subscribe_message_queues("pulled") == [queue]
            result = await consumer.pull(queue, "t1", 0, 32)
            assert (result.status, result.next_begin_offset) == (PullStatus.FOUND, 6)
            assert [message.body for message in result.messages] == [b"1", b"3", b"5"]
            await consumer.update_consume_offset(queue, 3)
            assert await consumer.fetch_consume_offset(queue, from_store=False) == 3
            await consumer.offset_store.update_to_broker(queue, 4, oneway=False)
            assert await consumer.offset_store.read_offset(queue, ReadOffsetType.READ_FROM_STORE) == 4
            ends: list[PullResult | RmqError] = []
            awaited = consumer.pull_async(queue, "*", 0, 1)
            consumer.pull_async(queue, "*", 1, 1, ends.append)
            consumer.pull_async(MessageQueue("pulled", "none", 0), "*", 1, 1, ends.append)
            assert [message.body for message in (await awaited).messages] == [b"0"]
            await until_async(lambda: len(ends) == 2)
            assert sorted(type(end).__name__ for end in ends) == ["ClientError", "PullResult"]
            assert consumer.is_running
        assert not consumer.is_running

    run(main())


def test_a_pull_that_waits_takes_no_thread_and_ends_with_the_message(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        queue = await filled(rmqfast_cluster, "waits", 0)
        async with (
            aio.Producer("late", name_server=rmqfast_cluster.name_server) as producer,
            aio.PullConsumer("pulls", name_server=rmqfast_cluster.name_server) as consumer,
        ):
            await consumer.pull(queue, "*", 0, 1)
            before = threads_of_loops()
            pulls = [asyncio.create_task(consumer.pull_block_if_not_found(queue, "*", 0, 32)) for _ in range(50)]
            given_up = consumer.pull_block_if_not_found_async(queue, "*", 0, 32)
            await turns(10)
            assert threads_of_loops() <= before
            given_up.cancel()
            await producer.send(Message("waits", b"x"), queue)
            results = await asyncio.gather(*pulls)
            assert [[message.body for message in result.messages] for result in results] == [[b"x"]] * 50

    run(main())


def test_an_answer_that_does_not_come_is_a_timeout(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        queue = await filled(rmqfast_cluster, "silent", 1)
        with gated(rmqfast_cluster) as (gate, config):
            async with aio.PullConsumer("pulls", config=config) as consumer:
                await consumer.pull(queue, "*", 0, 1)
                gate.shut()
                with pytest.raises(RemotingTimeoutError):
                    await consumer.pull(queue, "*", 0, 1, timeout=0.05)
                given_up = asyncio.create_task(consumer.pull(queue, "*", 0, 1))
                await turns(10)
                given_up.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await given_up
                gate.open()
                assert (await consumer.pull(queue, "*", 0, 1)).status is PullStatus.FOUND

    run(main())


def test_what_is_wrong_is_said_in_the_words_of_the_blocking_consumer(rmqfast_cluster: EmbeddedCluster) -> None:
    """Pulls have their own code here; all else asks its twin, errors and all."""

    async def main() -> None:
        queue = await filled(rmqfast_cluster, "wrong", 1)
        name_server = rmqfast_cluster.name_server
        asynchronous = aio.PullConsumer("wrong", name_server=name_server, instance_name="aio")
        blocking = rmqfast.PullConsumer("wrong", name_server=name_server, instance_name="blocking")
        calls: list[Any] = [
            lambda one: one.pull(queue, "*", -1, 1),
            lambda one: one.pull(None, "*", 0, 1),
            lambda one: one.pull(MessageQueue("wrong", "none", 0), "*", 0, 1),
            lambda one: one.pull(MessageQueue("nowhere", queue.broker_name, 0), "*", 0, 1),
            lambda one: one.pull_block_if_not_found(queue, "*", -1, 1),
            lambda one: one.fetch_subscribe_message_queues("nowhere"),
            lambda one: one.start(),
        ]

        async def compare() -> None:
            for number, call in enumerate(calls):
                with pytest.raises(RmqError) as expected:
                    await asyncio.to_thread(call, blocking)
                with pytest.raises(type(expected.value)) as raised:
                    await call(asynchronous)
                assert str(raised.value) == str(expected.value), number

        started = calls.pop()
        await compare()
        async with asynchronous:
            with blocking:
                calls.append(started)
                await compare()
        await compare()

    run(main())


def test_registered_topics_are_shared_out_and_a_listener_is_told(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        queue = await filled(rmqfast_cluster, "shared", 1)
        told: list[tuple[str, frozenset[MessageQueue]]] = []

        async def listen(topic: str, _all: object, mine: frozenset[MessageQueue]) -> None:
            assert threading.current_thread() is threading.main_thread()
            told.append((topic, mine))

        config = ClientConfig(name_server=rmqfast_cluster.name_server, rebalance_interval=0.1)
        options = PullOptions(message_queue_listener=listen)
        consumer = aio.PullConsumer("pulls", config=config, options=options)
        consumer.register_topics = frozenset({"shared"})
        async with consumer:
            await until_async(lambda: told == [("shared", frozenset({queue}))])
            assert await consumer.fetch_message_queues_in_balance("shared") == [queue]
            assert consumer.register_topics == {"shared"}

    run(main())
