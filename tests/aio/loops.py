"""What the tests of asyncio clients have: a loop of their own, and methods that wait until the loop lets them go on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tests.client.instance.gate import gated
from tests.waiting import PATIENCE

__all__ = ["Held", "gated", "run"]

T = TypeVar("T")


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
