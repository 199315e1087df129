"""What all clients of asyncio have in common: a blocking twin, threads that ask it, and the loop that they belong to.

A client is first used in the loop that it belongs to from then on. What waits, as for a broker, waits on a few threads
of the client's own, or in callbacks; never on the loop's thread, nor on its default executor.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from concurrent.futures import Future as ThreadFuture
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeAlias, TypeVar

from rmqfast.aio.endings import Endings
from rmqfast.errors import ClientError, ForkError

P = ParamSpec("P")
T = TypeVar("T")

#: Takes how something ended, once, on any thread.
OnEnd: TypeAlias = Callable[[T | BaseException], None]
#: Calls of one client that wait at a time; further ones wait for a thread.
CALLS_AT_A_TIME = 8


class Blocking(Protocol):
    """A blocking client."""

    def start(self) -> None:
        """Starts it."""

    def shutdown(self) -> None:
        """Ends it."""

    def __enter__(self) -> object:
        """Starts it; where that fails, nothing is left of it."""


Twin = TypeVar("Twin", bound=Blocking)


class Client(Generic[Twin]):
    """A client of asyncio.

    Args:
        twin: The blocking client that does it all.
    """

    def __init__(self, twin: Twin) -> None:
        self._twin: Twin = twin
        self._pid = os.getpid()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._endings: Endings
        self._threads = self._pool(CALLS_AT_A_TIME)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_started = self._is_ended = False

    async def start(self) -> None:
        """Starts it, off the loop; where this is cancelled, what was started meanwhile ends again.

        Raises:
            ClientError: As `start` of the blocking client; or it belongs to another loop.
        """
        await self._start_by(self._twin.start)

    async def shutdown(self) -> None:
        """Ends it, off the loop, which goes on meanwhile; once more is nothing.

        Calls that wait end with an error, or with their timeouts. Where this is cancelled, it ends nevertheless. A
        client whose loop is closed may be ended in another one.

        Raises:
            ClientError: It belongs to another loop.
        """
        if self._loop is None or not self._loop.is_closed():
            self._here()
        await asyncio.shield(asyncio.wrap_future(_on_a_thread(self._end)))

    async def __aenter__(self) -> Self:
        await self._start_by(self._twin.__enter__)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.shutdown()

    async def _start_by(self, start: Callable[[], object]) -> None:
        self._here()
        self._is_started = True
        starting = _on_a_thread(start)
        try:
            await asyncio.shield(asyncio.wrap_future(starting))
        except asyncio.CancelledError:
            _on_a_thread(partial(self._take_back, starting))
            raise

    def _here(self) -> asyncio.AbstractEventLoop:
        """The running loop, if it is the client's.

        Raises:
            ClientError: It is another one.
            ForkError: The client is that of a parent process.
        """
        loop = asyncio.get_running_loop()
        if loop is self._loop and os.getpid() == self._pid:
            return loop
        if os.getpid() != self._pid:
            raise ForkError(f"the {self._name} is that of a parent process: make another one in this one")
        if self._loop is not None:
            raise ClientError(
                f"the {self._name} belongs to another event loop",
                next_step="a client is used in the loop that it was first used in: make another one for each loop",
            )
        self._loop, self._endings = loop, Endings(loop)
        return loop

    @property
    def _name(self) -> str:
        return f"{type(self).__name__} of rmqfast.aio"

    async def _ask(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Does work on one of the client's threads, and waits for it."""
        return await self._ask_on(self._threads, work, *args, **named)

    async def _ask_on(self, threads: ThreadPoolExecutor, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        loop = self._here()
        context = copy_context()
        if not self._is_ended:
            try:
                asked = loop.run_in_executor(threads, partial(context.run, work, *args, **named))
            except RuntimeError:
                if not self._is_ended:
                    raise
            else:
                return await asked
        # there is nothing left to wait for: it is told that the client has ended
        return work(*args, **named)

    async def _ended(
        self, begin: Callable[[OnEnd[T]], bool], wait: Callable[[OnEnd[T]], object], threads: ThreadPoolExecutor
    ) -> T:
        """Begins something whose end a callback is told, and waits for that.

        Args:
            begin: Begins it where nothing has to be waited for; says whether it did.
            wait: Begins it otherwise.
            threads: Who does that.
        """
        future: asyncio.Future[T] = self._here().create_future()
        on_end = partial(self._endings.end, future)
        try:
            if not begin(on_end):
                await self._ask_on(threads, wait, on_end)
            return await future
        except BaseException:
            future.cancel()  # nobody looks at an end that comes later
            raise

    def _begun(
        self, begin: Callable[[], Coroutine[Any, Any, T]], callback: Callable[[Any], object] | None
    ) -> asyncio.Task[T]:
        """A task of what is not awaited yet; a callback is called on the loop with the result or the error."""
        task = self._here().create_task(begin())
        self._tasks.add(task)  # the loop itself holds tasks weakly
        task.add_done_callback(self._tasks.discard)
        if callback is not None:
            task.add_done_callback(partial(_tell, callback))
        return task

    def _pool(self, most: int) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(most, thread_name_prefix=f"rmqfast-aio-{type(self).__name__}")

    def _pools(self) -> list[ThreadPoolExecutor]:
        """The threads that end with it."""
        return [self._threads]

    def _end(self) -> None:
        try:
            self._twin.shutdown()
        finally:
            self._is_ended = self._is_started
            if self._is_ended:
                for pool in self._pools():
                    pool.shutdown(wait=False)

    def _take_back(self, starting: ThreadFuture[object]) -> None:
        starting.exception()
        self._end()


def _on_a_thread(work: Callable[[], T]) -> ThreadFuture[T]:
    """Does work on a thread that is there for it alone, so that it waits for nobody."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="rmqfast-aio")
    try:
        return pool.submit(work)
    finally:
        pool.shutdown(wait=False)


def _tell(callback: Callable[[Any], object], task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        error = task.exception()
        callback(task.result() if error is None else error)
