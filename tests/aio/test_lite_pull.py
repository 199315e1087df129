"""Lite pull consumers of asyncio: what a loop adds. `tests/client/lite_pull` has what they pull."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from itertools import cycle
from typing import Any

import pytest

from rmqfast import EmbeddedCluster, Message, MessageQueue, MessageSelector, aio
from rmqfast.client.instance import ClientConfig
from rmqfast.client.lite_pull import LitePullOptions
from rmqfast.errors import ClientError
from tests.client.pull.filled import fill
from tests.waiting import until_async

from .loops import run, threads_of_loops, turns


def config(cluster: EmbeddedCluster) -> ClientConfig:
    return ClientConfig(name_server=cluster.name_server, rebalance_interval=0.1, persist_offset_interval=0.1)


def made(cluster: EmbeddedCluster, group: str = "lite", **options: Any) -> aio.LitePullConsumer:
    return aio.LitePullConsumer(group, config=config(cluster), options=LitePullOptions(**options))


def test_polls_that_wait_take_no_thread_and_one_comes_back_with_the_message(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        queues = fill(rmqfast_cluster, "waited", 0, queues=1)
        async with (
            aio.Producer("late", name_server=rmqfast_cluster.name_server) as producer,
            made(rmqfast_cluster) as consumer,
        ):
            await consumer.assign(queues)
            before = threads_of_loops()
            polls = [asyncio.create_task(consumer.poll(3600.0)) for _ in range(50)]
            await turns(10)
            assert threads_of_loops() <= before
            await producer.send(Message("waited", b"x"), queues[0])
            done, waiting = await asyncio.wait(polls, return_when=asyncio.FIRST_COMPLETED)
            assert [message.body for task in done for message in task.result()] == [b"x"]
            for task in waiting:
                task.cancel()

    run(main())


def test_polls_that_are_cancelled_lose_nothing(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        queues = fill(rmqfast_cluster, "kept", 0)
        async with (
            aio.Producer("many", name_server=rmqfast_cluster.name_server) as producer,
            made(rmqfast_cluster, auto_commit_interval=1.0) as consumer,
        ):
            await consumer.assign(queues)

            async def send() -> None:
                for n in range(300):
                    await producer.send(Message("kept", b"%d" % n))

            sending, seen, cancelled = asyncio.create_task(send()), Counter[bytes](), 0
            for count in cycle(range(5)):  # at each place where a poll gives way to others
                poll = asyncio.create_task(consumer.poll(3600.0))
                await turns(count)
                poll.cancel()
                try:
                    messages = await poll
                except asyncio.CancelledError:
                    cancelled += 1
                    messages = await consumer.poll(0.05) if sending.done() else []
                seen.update(message.body or b"" for message in messages)
                if len(seen) == 300:
                    break
            await sending
        assert set(seen.values()) == {1}
        assert cancelled > 0

    run(main())


def test_an_end_wakes_who_waits(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        queues = fill(rmqfast_cluster, "ended", 0)
        consumer = made(rmqfast_cluster, poll_timeout=3600.0)
        await consumer.start()
        await consumer.assign(queues)

        async def iterate() -> list[Any]:
            return [message async for message in consumer]

        polling, iterating = asyncio.create_task(consumer.poll()), asyncio.create_task(iterate())
        await turns(10)
        await consumer.shutdown()
        assert (await polling, await iterating) == ([], [])
        with pytest.raises(ClientError, match="The consumer not running, please start it first"):
            await consumer.poll()

    run(main())


def test_listeners_of_queues_are_told_on_the_loop(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        fill(rmqfast_cluster, "told", 1)
        here, told = threading.get_ident(), list[tuple[str, int, int]]()

        async def listen(topic: str, _all: object, mine: frozenset[MessageQueue]) -> None:
            await asyncio.sleep(0)
            told.append((topic, len(mine), threading.get_ident()))

        def topic_changed(topic: str, queues: frozenset[MessageQueue]) -> None:
            told.append((f"changed {topic}", len(queues), threading.get_ident()))

        options: dict[str, Any] = {"message_queue_listener": listen, "topic_metadata_check_interval": 0.1}
        async with made(rmqfast_cluster, **options) as consumer:
            await consumer.register_topic_message_queue_change_listener("told", topic_changed)
            await consumer.subscribe("told", MessageSelector.by_tag("t0"))
            await until_async(lambda: ("told", 2, here) in told)
            async with aio.Admin(name_server=rmqfast_cluster.name_server) as admin:
                await admin.topics.update("told", queues=4)
            await until_async(lambda: ("changed told", 4, here) in told)

    run(main())


def test_others_have_a_turn_with_each_poll_even_where_there_always_is_something(
    rmqfast_cluster: EmbeddedCluster,
) -> None:
    async def main() -> None:
        queues = fill(rmqfast_cluster, "turns", 40, queues=1)
        had = 0

        async def have_turns() -> None:
            nonlocal had
            while True:
                had += 1
                await asyncio.sleep(0)

        async with made(rmqfast_cluster, pull_batch_size=1) as consumer:
            await consumer.assign(queues)
            await until_async(lambda: consumer.backlog == 40)
            others = asyncio.create_task(have_turns())
            for _ in range(40):
                before = had
                assert await consumer.poll(0.0)
                assert had > before
            others.cancel()

    run(main())
