"""A client of asyncio behind the face of its blocking twin: calls are waited for, so that the twin's tests hold."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, Self, TypeVar, cast

from rmqfast import aio
from tests.waiting import PATIENCE

T = TypeVar("T")


class Face(Protocol):
    """Gives what makes clients: of a blocking class that class, or a twin of asyncio that passes for it."""

    def __call__(self, kind: type[T], /) -> type[T]: ...


@contextmanager
def awaited_clients() -> Iterator[Face]:
    """Makes clients of asyncio, all on one loop, which pass for blocking ones."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="the loop of awaited clients")
    thread.start()

    def face(kind: type[T], /) -> type[T]:
        return cast("type[T]", lambda *args, **named: Awaited(loop, getattr(aio, kind.__name__)(*args, **named)))

    try:
        yield face
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.close()


class Awaited:
    """A client of asyncio, or what belongs to one, whose calls are waited for; it has the members of its twin."""

    def __init__(self, loop: asyncio.AbstractEventLoop, client: Any) -> None:
        vars(self).update(_loop=loop, _client=client)

    def __enter__(self) -> Self:
        self._call(self._client.__aenter__)
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._client.shutdown)

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._client, name)
        if isinstance(member, aio.OffsetStore):
            return Awaited(self._loop, member)
        return partial(self._call, member) if inspect.ismethod(member) else member

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._client, name, value)

    def _call(self, method: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Awaits a call; of one that is only begun it gives a future."""

        async def call() -> Any:
            called = method(*args, **named)
            if not isinstance(called, asyncio.Task):
                return await called
            called.add_done_callback(partial(_settle, begun))
            return begun

        begun: Future[Any] = Future()
        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(PATIENCE)


def _settle(begun: Future[Any], task: asyncio.Task[Any]) -> None:
    if (error := task.exception()) is None:
        begun.set_result(task.result())
    else:
        begun.set_exception(error)
