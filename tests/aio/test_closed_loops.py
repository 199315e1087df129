"""A client whose loop is closed before its `shutdown`: it ends, so that others get its queues and its messages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import rmqfast
from rmqfast import Admin, EmbeddedCluster, Message, Producer, aio
from tests.waiting import until

FIRST = rmqfast.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
DONE = rmqfast.ConsumeConcurrentlyStatus.CONSUME_SUCCESS


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as cluster, Admin(name_server=cluster.name_server) as admin:
        admin.create_topic("orders")
        yield cluster


async def push(name_server: str) -> aio.PushConsumer:
    async def listen(_messages: Sequence[Any], _context: Any) -> Any:
        return DONE

    consumer = aio.PushConsumer("left", name_server=name_server, consume_from_where=FIRST)
    await consumer.subscribe("orders")
    await consumer.register_message_listener(listen)
    await consumer.start()
    return consumer


async def lite_pull(name_server: str) -> aio.LitePullConsumer:
    consumer = aio.LitePullConsumer("left", name_server=name_server)
    await consumer.subscribe("orders")
    await consumer.start()
    return consumer


@pytest.mark.parametrize("start", [push, lite_pull])
def test_a_consumer_leaves_its_group_though_no_message_comes(
    start: Callable[[str], Any], cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = asyncio.run(start(cluster.name_server))
    kind = type(consumer).__name__
    text = f"the loop of the {kind} of the group left was closed before its shutdown(): the client ends"
    # it is said once the client has ended
    until(lambda: (logging.ERROR, text) in [(record.levelno, record.getMessage()) for record in caplog.records])
    with Admin(name_server=cluster.name_server) as admin, pytest.raises(rmqfast.RmqError, match="not online"):
        admin.groups.connections("left")


def test_no_message_of_it_is_lost_or_counts_as_tried(cluster: EmbeddedCluster) -> None:
    with pytest.warns(ResourceWarning, match="PushConsumer of the group left was dropped"):
        asyncio.run(push(cluster.name_server))
    seen: dict[bytes, int] = {}

    def listen(messages: Sequence[Any], _context: Any) -> Any:
        seen.update((message.body, message.reconsume_times) for message in messages)
        return DONE

    with Producer("shop", name_server=cluster.name_server) as producer:
        for number in range(20):
            producer.send(Message("orders", b"%d" % number))
    other = rmqfast.PushConsumer(
        "left", name_server=cluster.name_server, instance_name="other", consume_from_where=FIRST
    )
    other.subscribe("orders")
    other.register_message_listener(listen)
    with other:
        until(lambda: len(seen) == 20)
    assert set(seen.values()) == {0}
