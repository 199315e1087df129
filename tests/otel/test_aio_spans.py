"""Spans of the clients of asyncio."""

from __future__ import annotations

import asyncio
from typing import Any

from rmqfast import EmbeddedCluster, Message, aio
from rmqfast.client.push import ConsumeConcurrentlyStatus
from rmqfast.otel import instrument
from tests.waiting import PATIENCE

from .test_spans import Spans, attributes, ids, parent

SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS


def test_an_async_listener_runs_within_the_span_of_its_message() -> None:
    spans, told = Spans(), asyncio.Event()

    async def listen(_messages: Any, _context: Any) -> Any:
        await asyncio.sleep(0)
        with spans.tracer.start_as_current_span("inner"):
            told.set()
        return SUCCESS

    async def play(name_server: str) -> None:
        async with aio.Producer("spans", name_server=name_server) as producer:
            instrument(producer, spans.provider)
            with spans.tracer.start_as_current_span("outer"):
                await producer.send(Message("loops", b"x", tags="t"))
        consumer = aio.PushConsumer(
            "pushes",
            name_server=name_server,
            consume_from_where="CONSUME_FROM_FIRST_OFFSET",
            await_termination_millis_when_shutdown=60_000,
        )
        instrument(consumer, spans.provider)
        await consumer.subscribe("loops")
        await consumer.register_message_listener(listen)
        async with consumer:
            await asyncio.wait_for(told.wait(), PATIENCE)

    with EmbeddedCluster() as cluster:
        asyncio.run(play(cluster.name_server))
    (published,), (processed,) = spans("loops publish"), spans("loops process")
    (outer,), (inner,) = spans("outer"), spans("inner")
    assert (parent(published), parent(processed), parent(inner)) == (ids(outer), ids(published), ids(processed))
    assert attributes(published)["rocketmq.message.tag"] == "t"
