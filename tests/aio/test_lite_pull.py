"""Lite pull consumers of asyncio against a broker in this process."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import rmqfast
from rmqfast import EmbeddedCluster, Message, MessageQueue, MessageSelector, aio
from rmqfast.client.instance import ClientConfig
from rmqfast.client.lite_pull import LitePullOptions
from rmqfast.errors import ArgumentError, ClientError, UnknownColumnError

from .loops import STILL, Ticker, run, stood_still, until


def config(cluster: EmbeddedCluster) -> ClientConfig:
    return ClientConfig(name_server=cluster.name_server, rebalance_interval=0.2, persist_offset_interval=0.2)


async def filled(cluster: EmbeddedCluster, topic: str, count: int, queues: int = 2) -> list[MessageQueue]:
    """Makes a topic, and sends `0`, `1`... to its queues by turns."""
    async with aio.Producer("fills", name_server=cluster.name_server) as producer:
        await producer.create_topic(topic, queues)
        found = sorted(await producer.fetch_publish_message_queues(topic))
        for n in range(count):
            await producer.send(Message(topic, b"%d" % n, tags=f"t{n % 2}"), found[n % queues])
    return found


def assigned(cluster: EmbeddedCluster, group: str = "lite", **options: Any) -> aio.LitePullConsumer:
    return aio.LitePullConsumer(group, config=config(cluster), options=LitePullOptions(**options))


def test_what_was_sent_is_polled_once_and_committed(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        await filled(rmqfast_cluster, "polled", 10)
        async with aio.LitePullConsumer("lite", config=config(rmqfast_cluster)) as consumer:
            await consumer.subscribe("polled", "t0")
            bodies: list[bytes] = []
            while len(bodies) < 5:
                bodies += [message.body or b"" for message in await consumer.poll(10.0)]
            assert sorted(bodies) == [b"0", b"2", b"4", b"6", b"8"]
            queues = consumer.assignment
            assert queues == await consumer.fetch_message_queues("polled")
            await consumer.commit_sync()
            assert await consumer.committed(queues[0]) == 5
            assert await consumer.poll(0.0) == []
        async with aio.Admin(name_server=rmqfast_cluster.name_server) as admin:
            assert (await admin.consume_stats("lite", "polled")).of_queue(queues[0]).consumer_offset == 5  # type: ignore[union-attr]

    run(main())


def test_queues_are_assigned_paused_sought_and_iterated(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        queues = await filled(rmqfast_cluster, "sought", 10)
        async with assigned(rmqfast_cluster) as consumer:
            await consumer.assign(queues[:1])
            await consumer.seek_to_begin(queues[0])
            seen: list[int] = []
            async for message in consumer:
                seen.append(message.queue_offset)
                if len(seen) == 5:
                    break
            assert seen == [0, 1, 2, 3, 4]
            await consumer.seek(queues[0], 3)
            assert [message.queue_offset for message in await consumer.poll(10.0)] == [3, 4]
            await consumer.seek_to_end(queues[0])
            assert (await consumer.min_offset(queues[0]), await consumer.max_offset(queues[0])) == (0, 5)
            await consumer.pause(queues)
            assert await consumer.is_paused(queues[0])
            await consumer.resume(queues)
            assert not await consumer.is_paused(queues[0])
            await consumer.seek_to_time(queues[0], 0)
            await consumer.commit(queues, persist=True)
            batch = pa.record_batch(await consumer.poll_arrow(10.0, ["queue_offset", "body"]))
            assert batch.to_pydict() == {"queue_offset": [0, 1, 2, 3, 4], "body": [b"0", b"2", b"4", b"6", b"8"]}
            assert await consumer.poll_arrow(0.05) is None

    run(main())


def test_a_poll_that_waits_takes_no_thread_and_comes_back_with_the_message(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        queues = await filled(rmqfast_cluster, "waited", 0, queues=1)
        async with (
            aio.Producer("late", name_server=rmqfast_cluster.name_server) as producer,
            assigned(rmqfast_cluster) as consumer,
        ):
            await consumer.assign(queues)
            assert await consumer.poll(0.5) == []
            before = threading.active_count()
            polls = [asyncio.create_task(consumer.poll(20.0)) for _ in range(50)]
            await asyncio.sleep(0.2)
            assert threading.active_count() <= before
            await producer.send(Message("waited", b"x"), queues[0])
            done, waiting = await asyncio.wait(polls, return_when=asyncio.FIRST_COMPLETED)
            assert [message.body for task in done for message in task.result()] == [b"x"]
            for task in waiting:
                task.cancel()

    run(main())


def test_polls_that_are_cancelled_lose_nothing(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        queues = await filled(rmqfast_cluster, "kept", 0)
        async with (
            aio.Producer("many", name_server=rmqfast_cluster.name_server) as producer,
            assigned(rmqfast_cluster, auto_commit_interval=1.0) as consumer,
        ):
            await consumer.assign(queues)

            async def send() -> None:
                for n in range(1000):
                    await producer.send(Message("kept", b"%d" % n))

            sending, seen, cancelled = asyncio.create_task(send()), Counter[bytes](), 0
            while len(seen) < 1000:
                try:
                    messages = await asyncio.wait_for(consumer.poll(20.0), 0.0005)
                except TimeoutError:
                    cancelled += 1
                    messages = await consumer.poll(0.0) if sending.done() else []
                seen.update(message.body or b"" for message in messages)
            await sending
        assert set(seen.values()) == {1}
        assert cancelled > 10

    run(main())


def test_an_end_wakes_who_waits(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        queues = await filled(rmqfast_cluster, "ended", 0)
        consumer = assigned(rmqfast_cluster, poll_timeout=60.0)
        await consumer.start()
        await consumer.assign(queues)

        async def iterate() -> list[Any]:
            return [message async for message in consumer]

        polling, iterating = asyncio.create_task(consumer.poll(60.0)), asyncio.create_task(iterate())
        await asyncio.sleep(0.1)
        async with asyncio.timeout(10):
            await consumer.shutdown()
            assert (await polling, await iterating) == ([], [])
        with pytest.raises(ClientError, match="The consumer not running, please start it first"):
            await consumer.poll()

    run(main())


def test_what_is_wrong_is_said_in_the_words_of_the_blocking_consumer(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        queue = (await filled(rmqfast_cluster, "wrong", 1))[0]
        asynchronous = assigned(rmqfast_cluster, "asynchronous")
        blocking = rmqfast.LitePullConsumer("blocking", config=config(rmqfast_cluster))
        calls: list[Any] = [
            lambda consumer: consumer.poll(-1.0),
            lambda consumer: consumer.poll_arrow(-1.0),
            lambda consumer: consumer.subscribe(""),
            lambda consumer: consumer.subscribe("wrong", "||"),
            lambda consumer: consumer.assign([]),
            lambda consumer: consumer.seek(queue, 0),
            lambda consumer: consumer.seek(queue, 77),
            lambda consumer: consumer.fetch_message_queues("nowhere"),
            lambda consumer: consumer.register_topic_message_queue_change_listener("wrong", None),
            lambda consumer: consumer.max_offset(MessageQueue("wrong", "none", 0)),
            lambda consumer: consumer.start(),
        ]

        async def compare() -> None:
            for number, call in enumerate(calls):
                with pytest.raises((ClientError, ArgumentError)) as expected:
                    await asyncio.to_thread(call, blocking)
                with pytest.raises(type(expected.value)) as raised:
                    await call(asynchronous)
                texts = [str(each.value).replace("asynchronous", "blocking") for each in (raised, expected)]
                assert texts[0] == texts[1], number

        async with asynchronous:
            with blocking:
                await compare()
                with pytest.raises(UnknownColumnError):
                    await asynchronous.poll_arrow(0.0, ["none"])
        del calls[2:5]  # what is wanted after the end makes no difference
        await compare()

    run(main())


def test_listeners_of_queues_are_told_on_the_loop(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        await filled(rmqfast_cluster, "told", 1)
        here, told = threading.get_ident(), list[tuple[str, int, int]]()

        async def listen(topic: str, _all: object, mine: frozenset[MessageQueue]) -> None:
            await asyncio.sleep(0)
            told.append((topic, len(mine), threading.get_ident()))

        def topic_changed(topic: str, queues: frozenset[MessageQueue]) -> None:
            told.append((f"changed {topic}", len(queues), threading.get_ident()))

        async with assigned(
            rmqfast_cluster, message_queue_listener=listen, topic_metadata_check_interval=0.2
        ) as consumer:
            await consumer.register_topic_message_queue_change_listener("told", topic_changed)
            await consumer.subscribe("told", MessageSelector.by_tag("t0"))
            await until(lambda: ("told", 2, here) in told)
            async with aio.Admin(name_server=rmqfast_cluster.name_server) as admin:
                await admin.update_topic("told", queues=4)
            await until(lambda: ("changed told", 4, here) in told)

    run(main())


def test_the_loop_goes_on_while_a_poll_waits_and_where_there_always_is_something(
    rmqfast_cluster: EmbeddedCluster,
) -> None:
    async def main() -> float:
        ticker = Ticker()
        async with ticker.ticking(), assigned(rmqfast_cluster) as consumer:
            await consumer.assign(queues)
            assert await consumer.poll(10.0)
            await consumer.seek_to_end(queues[0])
            await consumer.seek_to_end(queues[1])
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(consumer.poll(20.0), 0.6)
            for queue in queues:
                await consumer.seek_to_begin(queue)
            seen = 0
            async for _ in consumer:
                seen += 1
                if seen == 2000:
                    break
        return ticker.longest

    async def fill() -> list[MessageQueue]:
        async with aio.Producer("fills", name_server=rmqfast_cluster.name_server) as producer:
            await producer.create_topic("ticks", 2)
            await producer.send_many([Message("ticks", b"x")] * 2000)
            return sorted(await producer.fetch_publish_message_queues("ticks"))

    queues = run(fill())
    assert stood_still(main) < STILL
