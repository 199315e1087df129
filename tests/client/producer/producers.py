"""Both producers behind one face: the blocking one, and that of asyncio whose calls are waited for."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any, Self, TypeAlias, cast

from rmqfast import aio
from rmqfast.client.producer import Producer
from tests.waiting import PATIENCE

#: Makes a producer, of what producers are made of.
Make: TypeAlias = Callable[..., Producer]


@contextmanager
def awaited_producers() -> Iterator[Make]:
    """Makes producers of asyncio, all on one loop."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="the loop of awaited producers")
    thread.start()
    try:
        yield cast("Make", partial(AwaitedProducer, loop))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.close()


class AwaitedProducer:
    """A producer of asyncio whose calls are waited for; it has the blocking producer's members."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *args: Any, **named: Any) -> None:
        self._loop, self._producer = loop, aio.Producer(*args, **named)

    def __enter__(self) -> Self:
        self._call(self._producer.__aenter__)
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._producer.shutdown)

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._producer, name)
        return partial(self._call, member) if inspect.ismethod(member) else member

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
