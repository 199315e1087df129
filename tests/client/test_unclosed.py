"""A client that is dropped while it runs is warned of, as by its class and its group."""

from __future__ import annotations

import asyncio
import gc
import inspect
import subprocess
import sys
import warnings
import weakref
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

import rmqfast
from rmqfast import EmbeddedCluster, aio
from rmqfast.client.lite_pull import LitePullOptions
from rmqfast.client.pull import PullOptions
from rmqfast.errors import RmqError

pytestmark = pytest.mark.usefixtures("quick_collections")


class Bank:
    def execute_local_transaction(self, _message: Any, _argument: Any) -> rmqfast.LocalTransactionState:
        return rmqfast.LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, _message: Any) -> rmqfast.LocalTransactionState:
        return rmqfast.LocalTransactionState.COMMIT_MESSAGE


class Own(rmqfast.LitePullConsumer):
    """An application's own consumer."""


def heard(*_: object) -> None:
    """A listener of messages or queues."""


BLOCKING: dict[str, Callable[[str], Any]] = {
    "Producer of the group g": lambda server: rmqfast.Producer("g", name_server=server),
    "PushConsumer of the group g": lambda server: listening(rmqfast.PushConsumer("g", name_server=server)),
    "LitePullConsumer of the group g": lambda server: subscribed(rmqfast.LitePullConsumer("g", name_server=server)),
    "Own of the group space%g": lambda server: Own("g", name_server=server, namespace="space", enable_msg_trace=True),
    "PullConsumer of the group g": lambda server: registered(rmqfast.PullConsumer("g", name_server=server)),
    "TransactionProducer of the group g": lambda server: rmqfast.TransactionProducer("g", Bank(), name_server=server),
    "Admin": lambda server: rmqfast.Admin(name_server=server),
}
ASYNC: dict[str, Callable[[str], Any]] = {
    "rmqfast.aio.Producer of the group g": lambda server: aio.Producer("g", name_server=server),
    "rmqfast.aio.TransactionProducer of the group g": lambda server: aio.TransactionProducer(
        "g", Bank(), name_server=server
    ),
    "rmqfast.aio.PushConsumer of the group g": lambda server: aio.PushConsumer("g", name_server=server),
    "rmqfast.aio.LitePullConsumer of the group g": lambda server: aio.LitePullConsumer(
        "g", name_server=server, options=LitePullOptions(message_queue_listener=heard)
    ),
    "rmqfast.aio.PullConsumer of the group g": lambda server: aio.PullConsumer(
        "g", name_server=server, options=PullOptions(message_queue_listener=heard)
    ),
    "rmqfast.aio.Admin": lambda server: aio.Admin(name_server=server),
}
#: Of clients with a listener that what runs has to call.
LISTENED: list[Callable[[str, Callable[..., Any]], Any]] = [
    lambda server, listen: listening(rmqfast.PushConsumer("g", name_server=server), listen),
    lambda server, listen: rmqfast.LitePullConsumer(
        "g", name_server=server, options=LitePullOptions(message_queue_listener=listen)
    ),
    lambda server, listen: rmqfast.PullConsumer(
        "g", name_server=server, options=PullOptions(message_queue_listener=listen)
    ),
    lambda server, listen: rmqfast.TransactionProducer(
        "g",
        SimpleNamespace(execute_local_transaction=listen, check_local_transaction=listen),
        name_server=server,
    ),
]
STEP = "was dropped and runs on: call shutdown(), or use it as a context manager"


def listening(consumer: rmqfast.PushConsumer, listen: Callable[..., Any] = heard) -> rmqfast.PushConsumer:
    consumer.register_message_listener(listen)
    return consumer


def subscribed(consumer: rmqfast.LitePullConsumer) -> rmqfast.LitePullConsumer:
    consumer.subscribe("t")
    return consumer


def registered(consumer: rmqfast.PullConsumer) -> rmqfast.PullConsumer:
    consumer.register_topics = ["t"]
    return consumer


def warned(drop: Callable[[], object]) -> list[str]:
    """What is warned of as a function drops clients, which end here."""
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        drop()
        gc.collect()
    dropped = [each for each in caught if each.category is ResourceWarning]
    for each in dropped:
        client: Any = each.source
        ending = (client.stop if hasattr(client, "stop") else client.shutdown)()
        if inspect.isawaitable(ending):
            asyncio.run(until_done(ending))
    return [str(each.message) for each in dropped]


async def until_done(ending: Awaitable[object]) -> None:
    await ending


@pytest.mark.parametrize("named", BLOCKING)
def test_a_client_that_is_dropped_is_warned_of_and_one_that_has_ended_is_not(named: str) -> None:
    make = BLOCKING[named]
    with EmbeddedCluster() as cluster:

        def drop() -> None:
            make(cluster.name_server).start()

        def end() -> None:
            with make(cluster.name_server):
                pass
            client = make(cluster.name_server)
            client.start()
            client.shutdown()
            make(cluster.name_server)  # never started

        assert warned(end) == []
        assert warned(drop) == [f"{named} {STEP}"]


@pytest.mark.parametrize("named", ASYNC)
def test_a_client_of_asyncio_is_warned_of_once(named: str) -> None:
    make = ASYNC[named]
    with EmbeddedCluster() as cluster:

        async def made() -> Any:
            client = make(cluster.name_server)
            if isinstance(client, aio.PushConsumer):
                await client.register_message_listener(heard)
            return client

        async def drop() -> None:
            await (await made()).start()

        async def end() -> None:
            async with await made():
                pass

        assert warned(lambda: asyncio.run(end())) == []
        assert warned(lambda: asyncio.run(drop())) == [f"{named} {STEP}"]


def test_a_cluster_that_is_dropped_is_warned_of() -> None:
    expected = "EmbeddedCluster was dropped and runs on: call stop(), or use it as a context manager"
    assert warned(lambda: EmbeddedCluster().start()) == [expected]


@pytest.mark.parametrize("kind", [rmqfast.LitePullConsumer, rmqfast.PullConsumer])
def test_a_consumer_whose_hooks_refer_to_it_is_dropped_with_them(kind: Any) -> None:
    with EmbeddedCluster() as cluster:

        def drop() -> None:
            consumer = kind("g", name_server=cluster.name_server)
            consumer.register_consume_hook(SimpleNamespace(name="of the consumer", consumer=consumer))
            if isinstance(consumer, rmqfast.PullConsumer):
                consumer.register_filter_hook(SimpleNamespace(name="of the consumer", consumer=consumer))
            consumer.start()

        assert warned(drop) == [f"{kind.__name__} of the group g {STEP}"]


@pytest.mark.parametrize("make", LISTENED)
def test_a_client_that_its_own_listener_uses_is_not_dropped(make: Callable[[str, Callable[..., None]], Any]) -> None:
    references = list[weakref.ref[Any]]()
    with EmbeddedCluster() as cluster:

        def start() -> None:
            def listen(*_: object) -> None:
                assert client.group == "g"

            client = make(cluster.name_server, listen)
            client.start()
            references.append(weakref.ref(client))

        assert warned(start) == []
        client = references[0]()
        assert client is not None
        client.shutdown()


@pytest.mark.parametrize("named", [each for each in BLOCKING if each != "Admin"])
def test_a_client_that_did_not_come_to_run_is_not_warned_of(named: str) -> None:
    kind: Any = type(BLOCKING[named]("127.0.0.1:1"))

    def refuse() -> None:
        with pytest.raises(RmqError):
            BLOCKING[named]("no port")
        listener = [Bank()] if kind is rmqfast.TransactionProducer else []
        client = kind("not allowed", *listener, name_server="127.0.0.1:1")
        if isinstance(client, rmqfast.PushConsumer):
            listening(client)
        with pytest.raises(RmqError, match="not allowed"):
            client.start()
        kind.__new__(kind)  # a subclass whose constructor raised before that of the client

    assert warned(refuse) == []


def test_a_consumer_whose_start_failed_once_it_ran_is_warned_of_unless_a_block_ended_it() -> None:
    with EmbeddedCluster() as cluster, rmqfast.Producer("p", name_server=cluster.name_server) as producer:
        producer.create_topic("t")

        def wrong() -> rmqfast.LitePullConsumer:
            consumer = rmqfast.LitePullConsumer("g", name_server=cluster.name_server)
            consumer.subscribe("t", rmqfast.MessageSelector.by_sql("n >"))
            return consumer

        def enter() -> None:
            with pytest.raises(RmqError), wrong():
                pass

        def start() -> None:
            with pytest.raises(RmqError):
                wrong().start()

        assert warned(enter) == []
        assert warned(start) == [f"LitePullConsumer of the group g {STEP}"]


def test_at_the_end_of_the_interpreter_nothing_is_warned_of() -> None:
    code = """
import rmqfast
cluster = rmqfast.EmbeddedCluster().start()
producer = rmqfast.Producer("g", name_server=cluster.name_server)
transactions = rmqfast.TransactionProducer("t", object(), name_server=cluster.name_server)
lite = rmqfast.LitePullConsumer("l", name_server=cluster.name_server)
lite.subscribe("t")
pull = rmqfast.PullConsumer("h", name_server=cluster.name_server)
admin = rmqfast.Admin(name_server=cluster.name_server)
for client in (producer, transactions, lite, pull, admin):
    client.start()
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
