"""Requests and replies of asyncio, and batches of rows."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pytest

from rmqfast import EmbeddedCluster, Message, aio, create_reply_message
from rmqfast.client.push import ConsumeConcurrentlyStatus
from rmqfast.errors import ClientError, RequestTimeoutError

from .loops import Ticker, run


def test_a_request_is_replied_to_and_the_loop_goes_on_meanwhile(rmqfast_cluster: EmbeddedCluster) -> None:
    name_server = rmqfast_cluster.name_server

    async def main() -> None:
        async with aio.Producer("asks", name_server=name_server) as producer:
            await producer.create_topic("prices")

            async def listen(messages: Any, _: Any) -> Any:
                for message in messages:
                    await asyncio.sleep(0.2)
                    await producer.send(create_reply_message(message, b"re: " + message.body))
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

            ticker = Ticker()
            consumer = aio.PushConsumer("replies", name_server=name_server)
            await consumer.subscribe("prices")
            await consumer.register_message_listener(listen)
            async with consumer, ticker.ticking():
                reply = await producer.request(Message("prices", b"one"), timeout=20)
                assert reply.body == b"re: one"
                told: list[Any] = []
                tasks = [
                    producer.request_async(Message("prices", b"%d" % number), told.append, timeout=20)
                    for number in range(10)
                ]
                replies = await asyncio.gather(*tasks)
                assert [each.body for each in replies] == [b"re: %d" % number for number in range(10)]
                await asyncio.sleep(0)
                assert len(told) == 10
            assert ticker.longest < 2.0, "nobody waits on the loop for a reply"

    run(main())


def test_a_request_that_nobody_replies_to_is_over_in_time(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        async with aio.Producer("asks", name_server=rmqfast_cluster.name_server) as producer:
            with pytest.raises(RequestTimeoutError):
                await producer.request(Message("unheard", b"x"), timeout=0.5)
            with pytest.raises(ClientError):
                await producer.request(Message("unheard", b""), timeout=0.5)

    run(main())


def test_rows_are_sent_as_one_batch(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        async with aio.Producer("rows", name_server=rmqfast_cluster.name_server) as producer:
            sent = await producer.send_batch(pa.table({"body": [b"a", b"b"]}), topic="rows")
            assert len(sent.msg_id.split(",")) == 2

    run(main())
