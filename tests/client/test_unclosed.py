"""A client that is dropped while it runs is warned of, as by its class and its group."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import rmqfast
from rmqfast import EmbeddedCluster, aio

BLOCKING: dict[str, Callable[[str], Any]] = {
    "Producer of the group g": lambda server: rmqfast.Producer("g", name_server=server),
    "PushConsumer of the group g": lambda server: listening(rmqfast.PushConsumer("g", name_server=server)),
    "Admin": lambda server: rmqfast.Admin(name_server=server),
}
ASYNC: dict[str, Callable[[str], Any]] = {
    "rmqfast.aio.Producer of the group g": lambda server: aio.Producer("g", name_server=server),
    "rmqfast.aio.LitePullConsumer of the group g": lambda server: aio.LitePullConsumer("g", name_server=server),
    "rmqfast.aio.PullConsumer of the group g": lambda server: aio.PullConsumer("g", name_server=server),
    "rmqfast.aio.Admin": lambda server: aio.Admin(name_server=server),
}
STEP = "was dropped and runs on: call shutdown(), or use it as a context manager"


def listening(consumer: rmqfast.PushConsumer) -> rmqfast.PushConsumer:
    consumer.register_message_listener(lambda _messages, _context: None)
    return consumer


def warned(drop: Callable[[], object]) -> list[str]:
    """What is warned of as a function drops clients."""
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        drop()
        gc.collect()
    return [str(each.message) for each in caught if each.category is ResourceWarning]


@pytest.mark.parametrize("named", BLOCKING)
def test_a_client_that_is_dropped_is_warned_of_and_one_that_has_ended_is_not(named: str) -> None:
    make = BLOCKING[named]
    with EmbeddedCluster() as cluster:

        def drop() -> None:
            make(cluster.name_server).start()

        def end() -> None:
            with make(cluster.name_server):
                pass
            make(cluster.name_server)  # never started

        assert warned(end) == []
        assert warned(drop) == [f"{named} {STEP}"]


@pytest.mark.parametrize("named", ASYNC)
def test_a_client_of_asyncio_is_warned_of_once(named: str) -> None:
    make = ASYNC[named]
    with EmbeddedCluster() as cluster:

        async def drop() -> None:
            client = make(cluster.name_server)
            await client.start()

        async def end() -> None:
            async with make(cluster.name_server):
                pass

        assert warned(lambda: asyncio.run(end())) == []
        assert warned(lambda: asyncio.run(drop())) == [f"{named} {STEP}"]


def test_a_cluster_that_is_dropped_is_warned_of() -> None:
    expected = "EmbeddedCluster was dropped and runs on: call stop(), or use it as a context manager"
    assert warned(lambda: EmbeddedCluster().start()) == [expected]


def test_at_the_end_of_the_interpreter_nothing_is_warned_of() -> None:
    code = """
import rmqfast
cluster = rmqfast.EmbeddedCluster().start()
producer = rmqfast.Producer("g", name_server=cluster.name_server)
producer.start()
admin = rmqfast.Admin(name_server=cluster.name_server)
admin.start()
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
