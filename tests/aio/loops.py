"""What the tests of asyncio clients have: a loop of their own, and methods that wait until the loop lets them go on."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from tests.client.instance.gate import gated
from tests.waiting import PATIENCE
from tests.waiting import until_async as until

__all__ = ["STILL", "Held", "Ticker", "gated", "run", "stood_still", "until"]

T = TypeVar("T")
#: How long a loop may stand still, in seconds.
STILL = 0.2


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine in a loop of its own; it does not take for ever."""

    async def within() -> T:
        async with asyncio.timeout(PATIENCE):
            return await work

    return asyncio.run(within())


class Held:
    """A method that goes on only once the loop has let it: if it held the loop up, it would wait for itself.

    Args:
        owner: Whose method it is.
        name: The method's.
    """

    def __init__(self, owner: object, name: str) -> None:
        self._call: Callable[..., Any] = getattr(owner, name)
        self.is_entered, self._may_go = threading.Event(), threading.Event()
        setattr(owner, name, self)

    def __call__(self, *args: Any, **named: Any) -> Any:
        self.is_entered.set()
        assert self._may_go.wait(PATIENCE), "the loop did not go on meanwhile"
        return self._call(*args, **named)

    def let_go(self) -> None:
        """Lets it go on, now and whenever it is called again."""
        self._may_go.set()


def stood_still(work: Callable[[], Coroutine[Any, Any, float]]) -> float:
    """How long a loop stood still, in seconds; what another process takes away passes, what blocks the loop stays."""
    times: list[float] = []
    while not times or (times[-1] > STILL and len(times) < 4):
        times.append(run(work()))
    return min(times)


class Ticker:
    """Notes how long the loop stood still at most.

    Attributes:
        longest: That, in seconds.
    """

    def __init__(self) -> None:
        self.longest = 0.0

    @contextlib.asynccontextmanager
    async def ticking(self) -> AsyncIterator[None]:
        """Looks while the block runs."""
        task = asyncio.create_task(self._tick())
        try:
            yield
        finally:
            task.cancel()

    async def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        before = loop.time()
        while True:
            await asyncio.sleep(0.01)
            now = loop.time()
            self.longest, before = max(self.longest, now - before), now
