"""Administration from asyncio, of a cluster in this process."""

from __future__ import annotations

import asyncio

import pytest

import rmqfast
from rmqfast import EmbeddedCluster, Message, aio
from rmqfast.errors import ClientError

from .loops import run


def test_a_cluster_is_looked_into_and_changed(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        name_server = rmqfast_cluster.name_server
        async with aio.Admin(name_server=name_server) as admin, aio.Producer("p", name_server=name_server) as producer:
            await asyncio.gather(*[admin.create_topic(f"t{n}", queues=n) for n in range(1, 9)])
            assert {f"t{n}" for n in range(1, 9)} <= set(await admin.topics())
            assert [row.queue_id for row in await admin.topic_stats("t3")] == [0, 1, 2]
            await admin.create_group("readers", retry_max_times=3)
            await admin.update_group("readers", consume_enable=False)
            config = (await admin.groups())["readers"]
            assert (config.retry_max_times, config.consume_enable) == (3, False)
            sent = await producer.send(Message("t1", b"x", keys="k"))
            message = await admin.view_message(sent.offset_msg_id)
            assert message.body == b"x"
            assert (await admin.explain(message, "readers")).outcome
            assert [connection.client_id for connection in await admin.producer_connections("p", "t1")] == [
                producer.client_id
            ]

    run(main())


def test_what_is_wrong_is_said_in_the_words_of_the_blocking_one(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        blocking = rmqfast.Admin(name_server=rmqfast_cluster.name_server)
        asynchronous = aio.Admin(name_server=rmqfast_cluster.name_server)
        with pytest.raises(ClientError) as expected:
            blocking.topics()
        with pytest.raises(ClientError) as raised:
            await asynchronous.topics()
        assert str(raised.value) == str(expected.value)
        async with asynchronous:
            with blocking:
                for call in ("topic_stats", "delete_group", "consumer_connections"):
                    with pytest.raises(rmqfast.RmqError) as expected_here:
                        await asyncio.to_thread(getattr(blocking, call), "a b")
                    with pytest.raises(type(expected_here.value)) as raised_here:
                        await getattr(asynchronous, call)("a b")
                    assert str(raised_here.value) == str(expected_here.value)
        with pytest.raises(ClientError, match="it is shut down"):
            await asynchronous.topics()

    run(main())
