"""Asyncio clients on RocketMQ's brokers, and on ours: each group sees what was sent, whoever is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from rmqfast import ConsumeConcurrentlyStatus, LocalTransactionState, Message, MessageView, aio
from rmqfast.client.consumer import ConsumeFromWhere
from rmqfast.client.instance import ClientConfig
from rmqfast.client.lite_pull import LitePullOptions
from rmqfast.client.producer import SendStatus
from tests.broker.interop.cluster import SCENARIO, Cluster
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.long, pytest.mark.soak, pytest.mark.timeout(600)]

#: A broker that gets no processor for a moment would refuse what waits.
BROKER_PROPERTIES = (*SCENARIO, "waitTimeMillsInSendQueue=20000")
TASKS, EACH = 20, 250
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


class Bank:
    """Commits each other transaction when it is carried out, and the others when it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def execute_local_transaction(self, _message: Message, number: int) -> LocalTransactionState:
        await asyncio.sleep(0.005)
        return LocalTransactionState.UNKNOWN if number % 2 else LocalTransactionState.COMMIT_MESSAGE

    async def check_local_transaction(self, _message: Any) -> LocalTransactionState:
        self.asked += 1
        return LocalTransactionState.COMMIT_MESSAGE


class Sender:
    """Sends from many tasks, some sends given up in the middle.

    Attributes:
        stored: What certainly is.
        given_up: What may be.
    """

    def __init__(self, producer: aio.Producer, topic: str) -> None:
        self._producer, self._topic, self._random = producer, topic, random.Random(7)
        self.stored: set[bytes] = set()
        self.given_up: set[bytes] = set()

    async def send_all(self) -> None:
        await asyncio.gather(*[self._send(task) for task in range(TASKS)])

    async def _send(self, task: int) -> None:
        for number in range(EACH):
            body = b"%d-%d" % (task, number)
            message = Message(self._topic, body, tags=f"t{number % 3}", keys=f"k{task}")
            try:
                if self._random.random() < 0.05:
                    async with asyncio.timeout(self._random.random() / 200):
                        await self._producer.send_ordered(message, task, timeout=10.0)
                else:
                    result = await self._producer.send(message, timeout=10.0)
                    assert result.status is SendStatus.SEND_OK
                self.stored.add(body)
            except TimeoutError:
                self.given_up.add(body)


async def comes_true(condition: Callable[[], Awaitable[bool]]) -> None:
    """Waits until something is so."""
    async with asyncio.timeout(2 * PATIENCE):
        while not await condition():  # noqa: ASYNC110 - what is looked at is far away, and sets no event
            await asyncio.sleep(0.1)


async def polled(
    consumer: aio.LitePullConsumer, topic: str, seen: Counter[bytes], places: Counter[tuple[int, int]]
) -> None:
    """Polls until it is cancelled; many polls are cancelled before."""
    await consumer.subscribe(topic)
    while True:
        with contextlib.suppress(TimeoutError):
            for message in await asyncio.wait_for(consumer.poll(5.0), random.random() / 20):
                seen[message.body or b""] += 1
                places[message.queue_id, message.queue_offset] += 1


def test_what_was_sent_is_seen_by_all_groups(each_cluster: Cluster) -> None:
    async def main() -> None:
        config = ClientConfig(name_server=each_cluster.name_server, rebalance_interval=1.0, persist_offset_interval=0.5)
        lite_seen, push_seen, places = Counter[bytes](), Counter[bytes](), Counter[tuple[int, int]]()

        async def listen(messages: Sequence[MessageView], _context: Any) -> Any:
            (message,) = messages
            await asyncio.sleep(0.001)
            if message.reconsume_times == 0 and message.queue_offset % 50 == 7:
                raise ValueError(message.queue_offset)  # it comes again
            push_seen[message.body or b""] += 1
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        async with contextlib.AsyncExitStack() as stack:
            admin = await stack.enter_async_context(aio.Admin(config=config, timeout=20.0))
            await admin.create_topic("soaked", queues=8)
            bank = Bank()
            producer = await stack.enter_async_context(aio.TransactionProducer("sends", bank, config=config))

            async def is_there() -> bool:
                return len(await producer.fetch_publish_message_queues("soaked")) == 8

            await comes_true(is_there)
            push = aio.PushConsumer("pushed", config=config, consume_from_where=FIRST)
            await push.subscribe("soaked")
            await push.register_message_listener(listen)
            await stack.enter_async_context(push)
            lite = await stack.enter_async_context(
                aio.LitePullConsumer("polled", config=config, options=LitePullOptions(consume_from_where=FIRST))
            )
            polling = asyncio.create_task(polled(lite, "soaked", lite_seen, places))
            sender = Sender(producer, "soaked")
            transactions = [
                producer.send_in_transaction(Message("soaked", b"transaction %d" % number), number)
                for number in range(50)
            ]
            await asyncio.gather(sender.send_all(), *transactions)
            expected = sender.stored | {b"transaction %d" % number for number in range(50)}

            async def are_seen() -> bool:
                assert not polling.done()
                return expected <= lite_seen.keys() and expected <= push_seen.keys()

            await comes_true(are_seen)
            polling.cancel()
            possible = expected | sender.given_up
            assert lite_seen.keys() <= possible
            assert push_seen.keys() <= possible
            twice = {place: times for place, times in places.items() if times > 1}
            assert not twice, "one member that has all queues is given each message once"
            assert bank.asked >= 25
            assert sender.given_up, "some sends were given up"
            stats = {row.queue_id: row.max_offset for row in await admin.topics.status("soaked")}

            async def is_noted() -> bool:
                rows = await admin.groups.progress("pushed", "soaked")
                return {row.queue_id: row.consumer_offset for row in rows} == stats

            await comes_true(is_noted)

    asyncio.run(main())
