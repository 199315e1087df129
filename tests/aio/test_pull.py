"""Pull consumers of asyncio: what a loop adds. `tests/client/pull` has what they pull."""

from __future__ import annotations

import asyncio

import pytest

from rmqfast import EmbeddedCluster, Message, PullStatus, aio
from rmqfast.errors import RemotingTimeoutError
from tests.client.pull.filled import bodies, fill
from tests.proxy import gated

from .loops import run, threads_of_loops, turns


def test_a_pull_that_waits_takes_no_thread_and_ends_with_the_message(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        (queue,) = fill(rmqfast_cluster, "waits", 0, queues=1)
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
            assert [bodies(result.messages) for result in results] == [["x"]] * 50

    run(main())


def test_an_answer_that_does_not_come_is_a_timeout(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        (queue,) = fill(rmqfast_cluster, "silent", 1, queues=1)
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
