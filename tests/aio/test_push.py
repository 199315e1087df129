"""Push consumers of asyncio against a broker in this process: listeners that are awaited, and plain ones."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

import rmqfast
from rmqfast import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus, EmbeddedCluster, MessageView, aio
from rmqfast.client.push import ConsumeConcurrentlyContext, in_order
from tests.client.push.listening import PATIENT, send
from tests.waiting import PATIENCE
from tests.waiting import until_async as until

from .loops import run

SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    # what is to come once more is due at once
    with EmbeddedCluster(config={"messageDelayLevel": " ".join(["0s"] * 18)}) as running:
        yield running


@pytest.fixture(scope="module")
def producer(cluster: EmbeddedCluster) -> Iterator[rmqfast.Producer]:
    with rmqfast.Producer("sends", name_server=cluster.name_server, config=PATIENT) as running:
        yield running


async def consumer(cluster: EmbeddedCluster, listener: Any, topic: str, **options: Any) -> aio.PushConsumer:
    """One that is not started."""
    config = replace(PATIENT, name_server=cluster.name_server)
    # what a listener has done is noted before the end
    options.setdefault("await_termination_millis_when_shutdown", int(PATIENCE * 1000))
    made = aio.PushConsumer(f"g-{topic}", config=config, **options)
    await made.subscribe(topic)
    await made.register_message_listener(listener)
    return made


def test_an_async_listener_runs_on_the_loop_many_calls_at_a_time(
    cluster: EmbeddedCluster, producer: rmqfast.Producer
) -> None:
    async def main() -> None:
        seen: list[bytes] = []
        at_work = 0
        are_eight_at_work = asyncio.Event()

        async def listen(messages: Sequence[MessageView], context: ConsumeConcurrentlyContext) -> Any:
            nonlocal at_work
            assert threading.current_thread() is threading.main_thread()
            assert {message.queue for message in messages} == {context.queue}
            at_work += 1
            assert at_work <= 8
            if at_work == 8:
                are_eight_at_work.set()
            await are_eight_at_work.wait()
            at_work -= 1
            seen.extend(message.body or b"" for message in messages)
            return SUCCESS

        async with await consumer(cluster, listen, "many", consume_thread_min=8) as one:
            await until(lambda: len(seen) == 20, lambda: (at_work, seen))
            assert (one.group, one.options.consume_thread_min) == ("g-many", 8)
            assert "@" in one.client_id
        assert sorted(seen) == sorted(bodies)
        async with aio.Admin(name_server=cluster.name_server) as admin:
            assert {row.consumer_offset for row in await admin.groups.progress("g-many", "many")} == {10}

    bodies = [b"%d" % number for number in range(20)]
    send(producer, "many", bodies, queues=2)
    run(main())


def test_what_a_coroutine_raises_is_a_retry(cluster: EmbeddedCluster, producer: rmqfast.Producer) -> None:
    async def main() -> None:
        times: dict[bytes, list[int]] = defaultdict(list)

        async def listen(messages: Sequence[MessageView], _context: Any) -> Any:
            (message,) = messages
            body = message.body or b""
            times[body].append(message.reconsume_times)
            await asyncio.sleep(0)
            if body in raised and not message.reconsume_times:
                raise raised[body]
            return SUCCESS

        async with await consumer(cluster, functools.partial(listen), "retried"):
            await until(lambda: sum(map(len, times.values())) == 5, lambda: times)
        assert times == {b"fails": [0, 1], b"is cancelled": [0, 1], b"ok": [0]}

    raised: dict[bytes, BaseException] = {b"fails": ValueError("mine"), b"is cancelled": asyncio.CancelledError()}
    send(producer, "retried", [*raised, b"ok"])
    run(main())


def test_a_queue_is_consumed_in_order_by_a_listener_that_is_marked(
    cluster: EmbeddedCluster, producer: rmqfast.Producer
) -> None:
    async def main() -> None:
        seen: list[int] = []

        @in_order
        async def listen(messages: Sequence[MessageView], _context: Any) -> Any:
            for _ in range(messages[0].queue_offset % 3):  # later ones may pass it
                await asyncio.sleep(0)
            seen.extend(message.queue_offset for message in messages)
            return ConsumeOrderlyStatus.SUCCESS

        async with await consumer(cluster, listen, "ordered"):
            await until(lambda: len(seen) == 5, lambda: seen)
        assert seen == list(range(5))

    send(producer, "ordered", [b"x"] * 5)
    run(main())


def test_messages_of_a_loop_that_ends_come_to_the_next_one(
    cluster: EmbeddedCluster, producer: rmqfast.Producer
) -> None:
    async def never(_messages: Sequence[MessageView], _context: Any) -> Any:
        begun.set()
        await asyncio.Event().wait()

    async def leave() -> aio.PushConsumer:
        # until its end it fails over and over: there is no loop any more
        left = await consumer(cluster, never, "left", max_reconsume_times=10_000)
        await left.start()
        await until(begun.is_set)
        return left

    async def take_over(left: aio.PushConsumer) -> None:
        seen: list[bytes | None] = []

        async def listen(messages: Sequence[MessageView], _context: Any) -> Any:
            seen.extend(message.body for message in messages)
            return SUCCESS

        await left.shutdown()
        async with await consumer(cluster, listen, "left"):
            await until(lambda: seen)
        assert seen == [b"x"]

    begun = threading.Event()
    send(producer, "left", [b"x"])
    run(take_over(run(leave())))
