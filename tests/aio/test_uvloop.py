"""Clients of asyncio on uvloop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import uvloop

import rmqfast
from rmqfast import EmbeddedCluster, Message, aio
from tests.waiting import PATIENCE


async def played(name_server: str) -> list[bytes]:
    seen: asyncio.Queue[bytes] = asyncio.Queue()

    async def listen(messages: Sequence[Any], _context: Any) -> rmqfast.ConsumeConcurrentlyStatus:
        for message in messages:
            await seen.put(message.body)
        return rmqfast.ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    first = rmqfast.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    consumer = aio.PushConsumer("g", name_server=name_server, consume_from_where=first)
    await consumer.subscribe("orders")
    await consumer.register_message_listener(listen)
    async with asyncio.timeout(PATIENCE), aio.Producer("shop", name_server=name_server) as producer:
        await asyncio.gather(*(producer.send(Message("orders", b"%d" % number)) for number in range(20)))
        async with consumer:
            return sorted([await seen.get() for _ in range(20)])


def test_sends_and_listeners_run_on_uvloop() -> None:
    with EmbeddedCluster() as cluster, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(played(cluster.name_server)) == sorted(b"%d" % number for number in range(20))
