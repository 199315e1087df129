"""Clients of asyncio and their loop: they start and end beside it, belong to it, and leave it alone."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError
from functools import partial, partialmethod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import rmqfast
from rmqfast import EmbeddedCluster, Message, aio
from rmqfast.aio.on_loop import OnLoop
from rmqfast.errors import ChannelClosedError, ClientError, ForkError, RmqError
from tests.proxy import gated
from tests.waiting import PATIENCE, until_async

from .loops import run


class _Commits:
    async def execute_local_transaction(self, _message: Message, _argument: Any) -> rmqfast.LocalTransactionState:
        return rmqfast.LocalTransactionState.COMMIT_MESSAGE

    async def check_local_transaction(self, _message: Any) -> None:
        return None


KINDS: dict[str, Callable[[str], Any]] = {
    "Producer": lambda name_server: aio.Producer("p", name_server=name_server),
    "TransactionProducer": lambda name_server: aio.TransactionProducer("t", _Commits(), name_server=name_server),
    "PullConsumer": lambda name_server: aio.PullConsumer("c", name_server=name_server),
    "LitePullConsumer": lambda name_server: aio.LitePullConsumer("l", name_server=name_server),
    "PushConsumer": lambda name_server: aio.PushConsumer("push", name_server=name_server),
    "Admin": lambda name_server: aio.Admin(name_server=name_server),
}


#: One call of a client that is running; the topic `asks` is there.
CALLS: dict[str, Callable[[Any], Coroutine[Any, Any, Any]]] = {
    "Producer": lambda client: client.send(Message("asks", b"x")),
    "TransactionProducer": lambda client: client.send(Message("asks", b"x")),
    "PullConsumer": lambda client: client.fetch_subscribe_message_queues("asks"),
    "LitePullConsumer": lambda client: client.poll(0.0),
    "PushConsumer": lambda client: client.resume(),
    "Admin": lambda client: client.topics.all(),
}


#: What each of them asks, on threads.
BLOCKING: dict[str, type] = {
    "Producer": rmqfast.Producer,
    "TransactionProducer": rmqfast.TransactionProducer,
    "PullConsumer": rmqfast.PullConsumer,
    "LitePullConsumer": rmqfast.LitePullConsumer,
    "PushConsumer": rmqfast.PushConsumer,
    "Admin": rmqfast.Admin,
}


async def made(kind: str, cluster: EmbeddedCluster) -> Any:
    """A client that may be started."""
    client = KINDS[kind](cluster.name_server)
    if isinstance(client, aio.PushConsumer):
        await client.register_message_listener(lambda *_: rmqfast.ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
    return client


def client_threads() -> set[threading.Thread]:
    """All threads but those that a server begins when it has something for them to do."""
    return {thread for thread in threading.enumerate() if not re.fullmatch(r"rmqfast-\d+", thread.name)}


async def all_end(threads: set[threading.Thread]) -> None:
    await until_async(lambda: not any(thread.is_alive() for thread in threads), lambda: threads)


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_belongs_to_the_loop_that_it_was_first_used_in(kind: str, cluster: EmbeddedCluster) -> None:
    ask = CALLS[kind]

    async def first() -> Any:
        async with aio.Admin(name_server=cluster.name_server) as admin:
            await admin.create_topic("asks", 1)
        client = await made(kind, cluster)
        await client.start()
        await ask(client)
        await asyncio.to_thread(run, refused(client.start(), client.shutdown(), ask(client)))
        await ask(client)
        return client

    async def refused(*calls: Awaitable[object]) -> None:
        for call in calls:
            with pytest.raises(ClientError, match=f"the {kind} of rmqfast.aio belongs to another event loop"):
                await call

    async def second(client: Any) -> None:
        await refused(client.start(), ask(client))
        await client.shutdown()  # of a loop that is closed, somebody has to
        await all_end(client_threads() - before)

    before = client_threads()
    run(second(run(first())))


@pytest.mark.parametrize("kind", KINDS)
def test_a_start_that_is_cancelled_leaves_nothing_behind(kind: str, cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        before = client_threads()
        client = await made(kind, cluster)
        starting = asyncio.create_task(client.start())
        await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        await all_end(client_threads() - before)
        with pytest.raises(ClientError):
            await client.start()

    run(main())


@pytest.mark.parametrize("kind", KINDS)
def test_starts_and_ends_do_not_stop_the_loop(
    kind: str, cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        def held(method: Callable[[Any], None], blocking: object) -> None:
            is_held.set()
            assert may_go_on.wait(PATIENCE), "the loop did not go on meanwhile"
            method(blocking)

        client = await made(kind, cluster)
        for name in ("start", "shutdown"):
            is_held, may_go_on = threading.Event(), threading.Event()
            monkeypatch.setattr(BLOCKING[kind], name, partialmethod(partial(held, getattr(BLOCKING[kind], name))))
            called = asyncio.create_task(getattr(client, name)())
            await until_async(is_held.is_set)
            may_go_on.set()
            await called
        await client.shutdown()  # once more is nothing

    run(main())


def test_a_start_in_vain_leaves_nothing_behind() -> None:
    async def main() -> None:
        before = client_threads()
        with pytest.raises(RmqError):
            async with aio.PushConsumer("g", name_server="127.0.0.1:1"):
                pass
        await all_end(client_threads() - before)

    run(main())


def test_calls_that_wait_at_the_end_are_told(cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        with gated(cluster) as (gate, config):
            producer = aio.Producer("ends", config=config)
            await producer.start()
            queue = (await producer.send(Message("ends", b"first"))).queue
            gate.shut()
            sends = [asyncio.create_task(producer.send(Message("ends", b"x"), queue, PATIENCE)) for _ in range(5)]
            await until_async(lambda: producer.in_flight == 5)
            asked = asyncio.create_task(producer.create_topic("ends", 4))
            await producer.shutdown()
            ends = await asyncio.gather(*sends, asked, return_exceptions=True)
            assert {type(end) for end in ends[:5]} == {ChannelClosedError}
            assert isinstance(ends[5], RmqError)
            with pytest.raises(ClientError, match="SHUTDOWN_ALREADY"):
                await producer.send(Message("ends", b"x"))

    # no send ends by itself, and nobody answers that the client leaves
    monkeypatch.setattr("rmqfast.client.producer.member._LONGEST_DRAIN", 0.05)
    monkeypatch.setattr("rmqfast.client.instance.heartbeats.UNREGISTER_TIMEOUT", 0.05)
    run(main())


def test_an_end_that_is_cancelled_goes_on(cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        before = client_threads()
        producer = aio.Producer("ends", name_server=cluster.name_server)
        await producer.start()
        ending = asyncio.create_task(producer.shutdown())
        await asyncio.sleep(0)
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
        await all_end(client_threads() - before)

    run(main())


def test_no_thread_stays_behind(cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        async with aio.Producer("makes", name_server=cluster.name_server) as producer:
            await producer.create_topic("asks", 1)
        before = client_threads()
        theirs: set[threading.Thread] = set()
        for kind in KINDS:
            async with await made(kind, cluster) as client:
                await CALLS[kind](client)
                theirs |= client_threads() - before
        await all_end(theirs)

    run(main())


def test_what_runs_on_a_loop_that_ends_ends_with_it(caplog: pytest.LogCaptureFixture) -> None:
    async def listen() -> int:
        begun.set()
        await asyncio.Event().wait()
        return 1

    async def main() -> threading.Thread:
        on_loop = OnLoop(listen, asyncio.get_running_loop())

        def call() -> None:
            for _ in range(2):  # while the loop runs, and when it is closed
                try:
                    ends.append(on_loop())
                except BaseException as error:  # noqa: BLE001 - whatever it is
                    ends.append(error)
                closed.wait(PATIENCE)

        thread = threading.Thread(target=call)
        thread.start()
        await until_async(begun.is_set)
        return thread

    begun, closed, ends = threading.Event(), threading.Event(), list[Any]()
    with caplog.at_level(logging.ERROR):
        thread = run(main())
        closed.set()
        thread.join(PATIENCE)
    assert isinstance(ends[0], CancelledError)
    assert str(ends[1]) == "Event loop is closed"
    assert not caplog.records


def test_a_fork_is_told_that_the_client_is_not_its_own(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused() -> None:
        for call in (producer.send(Message("forks", b"x")), producer.start()):
            with pytest.raises(ForkError, match="is that of a parent process"):
                await call

    async def main() -> None:
        await producer.start()
        with monkeypatch.context() as fork:
            fork.setattr("rmqfast.aio.calls.os", SimpleNamespace(getpid=lambda: 0))
            await refused()
            await asyncio.to_thread(run, refused())  # in a loop of the child's own
        await producer.shutdown()

    producer = aio.Producer("forks", name_server=cluster.name_server)
    run(main())


LEAVES = """
import asyncio, sys
from rmqfast import Message, aio
from rmqfast.client.instance import exits

exits.LONGEST = 3600.0  # what would only end because its time is over hangs, and fails the test

async def main():
    producer = aio.Producer("leaves", name_server=sys.argv[1])
    await producer.start()
    consumer = aio.LitePullConsumer("leaves", name_server=sys.argv[1])
    await consumer.subscribe("leaves")
    await consumer.start()
    asyncio.create_task(consumer.poll(600.0))
    producer.send_async(Message("leaves", b"x"))
    print((await producer.send(Message("leaves", b"y"))).status.value, flush=True)

asyncio.run(main())
"""


def test_an_interpreter_ends_although_nothing_was_shut_down(cluster: EmbeddedCluster) -> None:
    path = {**os.environ, "PYTHONPATH": str(Path(rmqfast.__file__).parents[1])}
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", LEAVES, cluster.name_server]
    ended = subprocess.run(command, env=path, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)
    assert (ended.returncode, ended.stdout) == (0, "SEND_OK\n"), ended.stderr
