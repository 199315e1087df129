"""Clients of asyncio: members have the types of the blocking ones. Nothing runs here: mypy and pyright read it."""

from __future__ import annotations

from typing import assert_type

from rmqfast import Message, MessageQueue, MessageView, aio
from rmqfast.client.producer import ProducerOptions, SendResult, TransactionSendResult


async def produce(listener: aio.TransactionListener, name_server: str) -> None:
    """What is listed, what is shown, and what has its own code."""
    async with aio.TransactionProducer("shop", listener, name_server=name_server) as producer:
        assert_type(producer, aio.TransactionProducer)
        assert_type(producer.group, str)
        assert_type(producer.options, ProducerOptions)
        assert_type(await producer.send_many([Message("orders", b"x")], batch_size=2), list[SendResult])
        assert_type(await producer.send(Message("orders", b"x"), timeout=1.0), SendResult)
        assert_type(await producer.send_in_transaction(Message("orders", b"x")), TransactionSendResult)


async def consume(name_server: str) -> None:
    """Each kind of consumer."""
    async with aio.LitePullConsumer("audit", name_server=name_server) as lite:
        await lite.subscribe("orders", "paid")
        assert_type(lite.assignment, list[MessageQueue])
        assert_type(await lite.poll(), list[MessageView])
        assert_type(await lite.max_offset(lite.assignment[0]), int)
        assert_type(await lite.offset_store.clone("orders"), dict[MessageQueue, int])
        # refused: it is shown, and no more
        lite.group = "other"  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]
        await lite.subscribe(7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    async with aio.PullConsumer("books", name_server=name_server) as pull:
        assert_type(await pull.fetch_subscribe_message_queues("orders"), list[MessageQueue])
        assert_type(pull.is_running, bool)
    push = aio.PushConsumer("billing", name_server=name_server)
    await push.subscribe("orders")
    assert_type(push.client_id, str)
    await push.start()
    await push.shutdown()
    async with aio.Admin(name_server=name_server) as admin:
        await admin.topics.create("orders", queues=2)
