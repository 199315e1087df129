"""Calls an application's functions from other threads; `async def` functions run on the loop."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import wait
from typing import Any

#: Seconds between two checks whether the loop was closed.
_LOOK = 1.0


class OnLoop:
    """Wraps an application's function so that any thread but the loop's can call it.

    A plain function runs on the calling thread. An `async def` function runs on the loop, while the calling thread
    blocks; if the loop is closed first, it raises `CancelledError`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        loop: asyncio.AbstractEventLoop,
        on_closed: Callable[[], object] = lambda: None,
    ) -> None:
        self._function, self._loop, self._on_closed = function, loop, on_closed

    def __call__(self, *args: Any) -> Any:
        result = self._function(*args)
        return self._wait_for(result) if inspect.isawaitable(result) else result

    def __repr__(self) -> str:
        return f"<OnLoop {self._function!r}>"

    def _wait_for(self, awaitable: Awaitable[Any]) -> Any:
        coroutine = awaitable if inspect.iscoroutine(awaitable) else _coroutine_of(awaitable)
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:
            # the loop is closed
            coroutine.close()
            self._on_closed()
            raise
        # a closed loop never completes the future
        while not self._loop.is_closed():
            wait([future], _LOOK)
            if future.done():
                return future.result()
        self._on_closed()
        future.cancel()
        return future.result()


async def _coroutine_of(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def call_on(
    get_loop: Callable[[], asyncio.AbstractEventLoop | None], listener: Callable[..., object] | None
) -> Callable[..., None] | None:
    """Returns a function that schedules the listener on the loop, from any thread. Returns None without a listener."""
    if listener is None:
        return None
    tasks: set[asyncio.Task[Any]] = set()

    def call(loop: asyncio.AbstractEventLoop, *args: Any) -> None:
        result = listener(*args)
        if inspect.isawaitable(result):
            task = loop.create_task(result if isinstance(result, Coroutine) else _coroutine_of(result))
            # the loop holds it weakly
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    def schedule(*args: Any) -> None:
        if (loop := get_loop()) is not None:
            loop.call_soon_threadsafe(call, loop, *args)

    return schedule
