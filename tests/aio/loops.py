"""What the tests of asyncio clients have: a loop of their own, its turns, and the threads that serve it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from tests.waiting import PATIENCE

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine in a loop of its own; it does not take for ever."""

    async def within() -> T:
        async with asyncio.timeout(PATIENCE):
            return await work

    return asyncio.run(within())


async def turns(count: int) -> None:
    """Lets the loop run so often: a task that was made gets to where it waits."""
    for _ in range(count):
        await asyncio.sleep(0)


def threads_of_loops() -> set[threading.Thread]:
    """Those that do what a client of a loop asks its twin for."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("rmqfast-aio")}
