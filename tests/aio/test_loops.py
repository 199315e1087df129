"""Clients of asyncio and their loop: they start and end beside it, belong to it, and leave it alone."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

import rmqfast
from rmqfast import EmbeddedCluster, Message, aio
from rmqfast.aio.client import Client
from rmqfast.aio.on_loop import OnLoop
from rmqfast.errors import ChannelClosedError, ClientError, ForkError, RmqError

from .loops import STILL, Ticker, gated, run, stood_still, until


class _Commits:
    async def execute_local_transaction(self, _message: Message, _argument: Any) -> rmqfast.LocalTransactionState:
        return rmqfast.LocalTransactionState.COMMIT_MESSAGE

    async def check_local_transaction(self, _message: Any) -> None:
        return None


def _listening(name_server: str) -> aio.PushConsumer:
    consumer = aio.PushConsumer("push", name_server=name_server)
    consumer._twin.register_message_listener(lambda *_: rmqfast.ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
    return consumer


KINDS: dict[str, Callable[[str], Client[Any]]] = {
    "Producer": lambda name_server: aio.Producer("p", name_server=name_server),
    "TransactionProducer": lambda name_server: aio.TransactionProducer("t", _Commits(), name_server=name_server),
    "PullConsumer": lambda name_server: aio.PullConsumer("c", name_server=name_server),
    "LitePullConsumer": lambda name_server: aio.LitePullConsumer("l", name_server=name_server),
    "PushConsumer": _listening,
    "Admin": lambda name_server: aio.Admin(name_server=name_server),
}


async def asks(client: Client[Any]) -> None:
    """One call of a client that is running."""
    if isinstance(client, aio.Producer):
        await client.send(Message("asks", b"x"))
    elif isinstance(client, aio.PullConsumer | aio.PushConsumer):
        await (
            client.fetch_subscribe_message_queues("asks") if isinstance(client, aio.PullConsumer) else client.resume()
        )
    elif isinstance(client, aio.LitePullConsumer):
        await client.poll(0.0)
    else:
        assert isinstance(client, aio.Admin)
        await client.topics()


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_belongs_to_the_loop_that_it_was_first_used_in(kind: str, rmqfast_cluster: EmbeddedCluster) -> None:
    async def first() -> Client[Any]:
        async with aio.Admin(name_server=rmqfast_cluster.name_server) as admin:
            await admin.create_topic("asks", 1)
        client = KINDS[kind](rmqfast_cluster.name_server)
        await client.start()
        await asks(client)
        in_another = await asyncio.to_thread(lambda: run(refused(client)))
        assert in_another == f"the {kind} of rmqfast.aio belongs to another event loop"
        await asks(client)
        return client

    async def refused(client: Client[Any]) -> str:
        for call in (client.shutdown, client.start):
            if not client._loop or not client._loop.is_closed():
                with pytest.raises(ClientError, match="belongs to another event loop"):
                    await call()
        with pytest.raises(ClientError, match="make another one for each loop") as raised:
            await asks(client)
        return str(raised.value).splitlines()[0]

    async def second(client: Client[Any]) -> None:
        await refused(client)
        await client.shutdown()  # of a loop that is closed, somebody has to
        assert client._is_ended

    run(second(run(first())))


@pytest.mark.parametrize("kind", KINDS)
def test_a_start_that_is_cancelled_leaves_nothing_behind(kind: str, rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        client = KINDS[kind](rmqfast_cluster.name_server)
        starting = asyncio.create_task(client.start())
        await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        await until(lambda: client._is_ended)
        with pytest.raises(ClientError):
            await client.start()

    before = threading.active_count()
    run(main())
    deadline = time.monotonic() + 20
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before


@pytest.mark.parametrize("kind", KINDS)
def test_starts_and_ends_do_not_stop_the_loop(kind: str, rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> float:
        ticker = Ticker()
        async with ticker.ticking():
            async with KINDS[kind](rmqfast_cluster.name_server) as client:
                await asyncio.sleep(0.05)
            await client.shutdown()  # once more is nothing
        return ticker.longest

    assert stood_still(main) < STILL


def test_a_start_in_vain_stops_neither_loop_nor_threads() -> None:
    async def main() -> None:
        ticker = Ticker()
        async with ticker.ticking():
            consumer = aio.PushConsumer("g", name_server="127.0.0.1:1")
            with pytest.raises(RmqError):
                async with consumer:
                    pass
        assert ticker.longest < 1.0

    run(main())


def test_calls_that_wait_at_the_end_are_told(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        with gated(rmqfast_cluster) as (gate, config):
            producer = aio.Producer("ends", config=config)
            await producer.start()
            queue = (await producer.send(Message("ends", b"first"))).queue
            gate.shut()
            sends = [asyncio.create_task(producer.send(Message("ends", b"x"), queue, 30.0)) for _ in range(5)]
            await until(lambda: producer._twin._in_flight.count == 5)
            asked = asyncio.create_task(producer.create_topic("ends", 4))
            ticker = Ticker()
            async with ticker.ticking(), asyncio.timeout(15):
                await producer.shutdown()
                ends = await asyncio.gather(*sends, asked, return_exceptions=True)
            assert {type(end) for end in ends[:5]} == {ChannelClosedError}
            assert isinstance(ends[5], RmqError)
            assert ticker.longest < 1.0
            with pytest.raises(ClientError, match="SHUTDOWN_ALREADY"):
                await producer.send(Message("ends", b"x"))

    run(main())


def test_an_end_that_is_cancelled_goes_on(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        producer = aio.Producer("ends", name_server=rmqfast_cluster.name_server)
        await producer.start()
        ending = asyncio.create_task(producer.shutdown())
        await asyncio.sleep(0)
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
        await until(lambda: producer._is_ended)

    run(main())


def test_no_thread_stays_behind(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        for kind in KINDS.values():
            async with kind(rmqfast_cluster.name_server) as client:
                await asks(client)

    async def once() -> None:
        async with aio.Producer("makes", name_server=rmqfast_cluster.name_server) as producer:
            await producer.create_topic("asks", 1)

    run(once())
    before = {thread.name for thread in threading.enumerate()}
    run(main())
    deadline = time.monotonic() + 20
    while (left := {thread.name for thread in threading.enumerate()} - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left


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
                closed.wait(20)

        thread = threading.Thread(target=call)
        thread.start()
        await until(begun.is_set)
        return thread

    begun, closed, ends = threading.Event(), threading.Event(), list[Any]()
    with caplog.at_level(logging.ERROR):
        thread = run(main())
        closed.set()
        thread.join(20)
    assert isinstance(ends[0], CancelledError)
    assert str(ends[1]) == "Event loop is closed"
    assert not caplog.records


def test_a_fork_is_told_that_the_client_is_not_its_own(rmqfast_cluster: EmbeddedCluster) -> None:
    async def start() -> None:
        await producer.start()
        await producer.send(Message("forks", b"x"))

    def child(told: Any) -> None:
        for call in (lambda: producer.send(Message("forks", b"x")), producer.start):
            try:
                asyncio.run(call())
            except ForkError as error:
                told.send(str(error))

    producer = aio.Producer("forks", name_server=rmqfast_cluster.name_server)
    run(start())
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=child, args=(there,))
    process.start()
    expected = "the Producer of rmqfast.aio is that of a parent process: make another one in this one"
    for _ in range(2):
        assert here.poll(20)
        assert here.recv() == expected
    process.join(20)
    run(producer.shutdown())


LEAVES = """
import asyncio, sys
from rmqfast import Message, aio

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


def test_an_interpreter_ends_although_nothing_was_shut_down(rmqfast_cluster: EmbeddedCluster) -> None:
    path = {**os.environ, "PYTHONPATH": str(Path(rmqfast.__file__).parents[1])}
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", LEAVES, rmqfast_cluster.name_server]
    began = time.monotonic()
    ended = subprocess.run(command, env=path, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (0, "SEND_OK\n"), ended.stderr
    assert time.monotonic() - began < 20
