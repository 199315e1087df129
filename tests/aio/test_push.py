"""Push consumers of asyncio against a broker in this process: listeners that are awaited, and plain ones."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import rmqfast
from rmqfast import (
    ConsumeConcurrentlyStatus,
    ConsumeOrderlyStatus,
    EmbeddedCluster,
    Message,
    MessageQueue,
    MessageView,
    aio,
)
from rmqfast.client.push import ConsumeConcurrentlyContext, in_order
from rmqfast.errors import ArgumentError, ClientError

from .loops import STILL, Ticker, run, stood_still, until

SUCCESS, LATER = ConsumeConcurrentlyStatus


@pytest.fixture
def rmqfast_broker_config() -> Mapping[str, str]:
    """What is to come once more comes soon."""
    return {"messageDelayLevel": "1s " * 18}


async def send(cluster: EmbeddedCluster, topic: str, bodies: Sequence[bytes], queues: int = 2) -> None:
    async with aio.Producer("sends", name_server=cluster.name_server) as producer:
        await producer.create_topic(topic, queues)
        targets = sorted(await producer.fetch_publish_message_queues(topic))
        for number, body in enumerate(bodies):
            await producer.send(Message(topic, body), targets[number % queues])


async def consumer(cluster: EmbeddedCluster, listener: Any, topic: str, **options: Any) -> aio.PushConsumer:
    """One that is not started."""
    orderly = options.pop("orderly", None)
    made = aio.PushConsumer(f"g-{topic}", name_server=cluster.name_server, **options)
    await made.subscribe(topic)
    await made.register_message_listener(listener, orderly=orderly)
    return made


def test_an_async_listener_runs_on_the_loop_many_calls_at_a_time(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        seen: list[bytes | None] = []
        at_work = most = 0

        async def listen(messages: Sequence[MessageView], context: ConsumeConcurrentlyContext) -> Any:
            nonlocal at_work, most
            assert threading.current_thread() is threading.main_thread()
            assert {message.queue for message in messages} == {context.queue}
            at_work += 1
            most = max(most, at_work)
            await asyncio.sleep(0.05)
            at_work -= 1
            seen.extend(message.body for message in messages)
            return SUCCESS

        await send(rmqfast_cluster, "many", [b"%d" % n for n in range(40)])
        patient = {"await_termination_millis_when_shutdown": 20_000}  # or the last ones would come again
        async with await consumer(rmqfast_cluster, listen, "many", consume_thread_min=8, **patient):
            await until(lambda: len(seen) == 40)
        assert sorted(seen, key=lambda body: int(body or b"")) == [b"%d" % n for n in range(40)]
        assert 2 <= most <= 8
        async with aio.Admin(name_server=rmqfast_cluster.name_server) as admin:
            assert {row.consumer_offset for row in await admin.consume_stats("g-many", "many")} == {20}

    run(main())


def test_a_plain_listener_runs_on_threads(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        seen: list[bytes | None] = []

        def listen(messages: Sequence[MessageView], _context: Any) -> Any:
            assert threading.current_thread() is not threading.main_thread()
            seen.extend(message.body for message in messages)
            return SUCCESS

        await send(rmqfast_cluster, "plain", [b"x"])
        async with await consumer(rmqfast_cluster, listen, "plain"):
            await until(lambda: seen)
        assert seen == [b"x"]

    run(main())


def test_what_is_not_a_status_is_a_retry(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        times: dict[bytes, list[int]] = defaultdict(list)

        async def listen(messages: Sequence[MessageView], _context: Any) -> Any:
            (message,) = messages
            body = message.body or b""
            times[body].append(message.reconsume_times)
            await asyncio.sleep(0)
            if message.reconsume_times > 0 or body == b"ok":
                return SUCCESS
            if body == b"raises":
                raise ValueError(body)
            if body == b"is cancelled":
                raise asyncio.CancelledError
            return {b"None": None, b"True": True, b"later": LATER, b"an ok in order": ConsumeOrderlyStatus.SUCCESS}[
                body
            ]

        bodies = [b"raises", b"is cancelled", b"None", b"True", b"later", b"an ok in order", b"ok"]
        await send(rmqfast_cluster, "retried", bodies)
        async with await consumer(rmqfast_cluster, functools.partial(listen), "retried"):
            await until(lambda: sum(map(len, times.values())) == 13, lambda: times)
            await asyncio.sleep(0.2)
        assert times == {body: [0] if body == b"ok" else [0, 1] for body in bodies}

    run(main())


def test_a_message_whose_listener_takes_too_long_comes_once_more(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        times: list[int] = []
        go_on = asyncio.Event()

        async def listen(messages: Sequence[MessageView], _context: Any) -> Any:
            times.append(messages[0].reconsume_times)
            if messages[0].reconsume_times == 0:
                await go_on.wait()
            return SUCCESS

        await send(rmqfast_cluster, "slow", [b"x"])
        async with await consumer(rmqfast_cluster, listen, "slow", consume_timeout=0.01):
            await until(lambda: times == [0, 1], lambda: times)
            go_on.set()

    run(main())


def test_a_queue_is_consumed_in_order_by_a_listener_that_is_marked(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        seen: dict[int, list[int]] = defaultdict(list)
        refused: set[tuple[int, int]] = set()

        @in_order
        async def listen(messages: Sequence[MessageView], context: Any) -> Any:
            (message,) = messages
            place = message.queue_id, message.queue_offset
            await asyncio.sleep(0.001 * (message.queue_offset % 3))
            if message.queue_offset == 4 and place not in refused:
                refused.add(place)
                context.suspend_current_queue_time = 0.05
                return None
            seen[message.queue_id].append(message.queue_offset)
            return ConsumeOrderlyStatus.SUCCESS

        await send(rmqfast_cluster, "ordered", [b"x"] * 20)
        async with await consumer(rmqfast_cluster, listen, "ordered"):
            await until(lambda: sum(map(len, seen.values())) == 20, lambda: seen)
        assert seen == {0: list(range(10)), 1: list(range(10))}
        assert len(refused) == 2

    run(main())


def test_messages_of_a_loop_that_ends_come_to_the_next_one(rmqfast_cluster: EmbeddedCluster) -> None:
    async def never(_messages: Sequence[MessageView], _context: Any) -> Any:
        begun.set()
        await asyncio.Event().wait()

    async def leave() -> aio.PushConsumer:
        left = await consumer(rmqfast_cluster, never, "left")
        await left.start()
        await until(begun.is_set)
        return left

    async def take_over(left: aio.PushConsumer) -> None:
        seen: list[bytes | None] = []

        async def listen(messages: Sequence[MessageView], _context: Any) -> Any:
            seen.extend(message.body for message in messages)
            return SUCCESS

        await left.shutdown()
        async with await consumer(rmqfast_cluster, listen, "left"):
            await until(lambda: seen)
        assert seen == [b"x"]

    begun = threading.Event()
    run(send(rmqfast_cluster, "left", [b"x"], queues=1))
    run(take_over(run(leave())))


def test_it_is_suspended_resumed_and_looked_into(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        seen: list[bytes | None] = []

        async def listen(messages: Sequence[MessageView], _context: Any) -> Any:
            seen.extend(message.body for message in messages)
            return SUCCESS

        await send(rmqfast_cluster, "looked", [b"1"])
        async with await consumer(rmqfast_cluster, listen, "looked", pull_suspend_millis=100) as one:
            await until(lambda: seen)
            queues = await one.fetch_subscribe_message_queues("looked")
            assert len(queues) == 2
            assert "mqTable" in await one.running_info()
            await one.update_consume_offset(queues[0], 1)
            await one.suspend()
            await one.resume()
            await one.subscribe("other")
            await one.unsubscribe("other")
            assert one.group == "g-looked"
            assert "@" in one.client_id
            assert one.options.consume_thread_min == 20

    run(main())


def test_what_is_wrong_is_said_in_the_words_of_the_blocking_consumer(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        name_server = rmqfast_cluster.name_server
        asynchronous = aio.PushConsumer("wrong", name_server=name_server, instance_name="aio")
        blocking = rmqfast.PushConsumer("wrong", name_server=name_server, instance_name="blocking")
        queue = MessageQueue("wrong", "broker-a", 0)
        calls: list[Any] = [
            lambda one: one.subscribe(""),
            lambda one: one.subscribe("wrong", "||"),
            lambda one: one.register_message_listener(7),
            lambda one: one.suspend(),
            lambda one: one.running_info(),
            lambda one: one.update_consume_offset(queue, 1),
            lambda one: one.start(),
            lambda one: one.fetch_subscribe_message_queues("wrong"),
        ]
        for call in calls:
            with pytest.raises((ClientError, ArgumentError)) as expected:
                await asyncio.to_thread(call, blocking)
            with pytest.raises(type(expected.value)) as raised:
                await call(asynchronous)
            assert str(raised.value) == str(expected.value)
        with pytest.raises(ArgumentError, match="expected options of"):
            aio.PushConsumer("wrong", no_option=1)

    run(main())


def test_the_loop_goes_on_while_a_consumer_starts_works_and_ends(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main(topic: str) -> float:
        seen: list[MessageView] = []

        async def listen(messages: Sequence[MessageView], _context: Any) -> Any:
            seen.extend(messages)
            return SUCCESS

        await send(rmqfast_cluster, topic, [b"x"] * 200)
        ticker = Ticker()
        async with ticker.ticking(), await consumer(rmqfast_cluster, listen, topic):
            await until(lambda: len(seen) == 200)
        return ticker.longest

    assert stood_still(lambda: main(f"ticks-{time.monotonic_ns()}")) < STILL
