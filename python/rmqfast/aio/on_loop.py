"""Functions of the application's that other threads call: what is `async def` runs on the loop."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import wait
from typing import Any

#: How long a thread waits for what runs on the loop before it looks whether there still is a loop, in seconds.
_LOOK = 1.0


class OnLoop:
    """A function to be called on any thread but the loop's.

    A plain function runs on the thread that calls it. What is to be awaited, as of an `async def`, runs on the loop,
    and the thread waits for it: it gets what is returned or raised, and a `CancelledError` where the loop ends before.

    Args:
        function: The application's.
        loop: The loop.
        on_closed: Is called where the loop is closed, before that is raised.

    Example:
        >>> async def double(number):
        ...     return 2 * number
        >>> async def main():
        ...     on_loop = OnLoop(double, asyncio.get_running_loop())
        ...     return await asyncio.to_thread(on_loop, 4)
        >>> asyncio.run(main())
        8
    """

    def __init__(
        self,
        function: Callable[..., Any],
        loop: asyncio.AbstractEventLoop,
        on_closed: Callable[[], object] = lambda: None,
    ) -> None:
        self._function, self._loop, self._on_closed = function, loop, on_closed

    def __call__(self, *args: Any) -> Any:
        """Calls it, and waits."""
        result = self._function(*args)
        return self._waited_for(result) if inspect.isawaitable(result) else result

    def __repr__(self) -> str:
        return f"<OnLoop {self._function!r}>"

    def _waited_for(self, awaitable: Awaitable[Any]) -> Any:
        coroutine = awaitable if inspect.iscoroutine(awaitable) else _awaited(awaitable)
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:  # the loop is closed
            coroutine.close()
            self._on_closed()
            raise
        while not self._loop.is_closed():
            wait([future], _LOOK)
            if future.done():
                return future.result()
        self._on_closed()
        future.cancel()
        return future.result()


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def told_on(loop: asyncio.AbstractEventLoop, listener: Callable[..., object]) -> Callable[..., None]:
    """A function for any thread that has a listener called on the loop, soon, and does not wait for it.

    Args:
        loop: The loop.
        listener: A plain function or an `async def`; its errors are the loop's to report.
    """
    tasks: set[asyncio.Task[Any]] = set()

    def call(*args: Any) -> None:
        result = listener(*args)
        if inspect.isawaitable(result):
            task = loop.create_task(result if isinstance(result, Coroutine) else _awaited(result))
            tasks.add(task)  # the loop holds it weakly
            task.add_done_callback(tasks.discard)

    def tell(*args: Any) -> None:
        loop.call_soon_threadsafe(call, *args)

    return tell


def told_later(
    loop: Callable[[], asyncio.AbstractEventLoop | None], listener: Callable[..., object] | None
) -> Callable[..., None] | None:
    """As `told_on`, of a loop that is not known yet; until it is, nobody is told."""
    if listener is None:
        return None

    def tell(*args: Any) -> None:
        if (running := loop()) is not None:
            told_on(running, listener)(*args)

    return tell
