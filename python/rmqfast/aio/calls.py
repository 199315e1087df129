"""How a client of asyncio asks its blocking twin: threads that do so, and the loop that the client belongs to.

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
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar

from rmqfast.aio.endings import Endings
from rmqfast.aio.loop_watch import WATCH
from rmqfast.client.instance.unclosed import leave_warning_to_owner, warn_unclosed
from rmqfast.errors import ClientError, ForkError
from rmqfast.logs import QuietLock, logger_of

_log = logger_of(__name__)

P = ParamSpec("P")
T = TypeVar("T")

#: Takes how something ended, once, on any thread.
OnEnd: TypeAlias = Callable[[T | BaseException], None]
#: Calls of one client that wait at a time; further ones wait for a thread.
CALLS_AT_A_TIME = 8


class Calls:
    """What a client of asyncio has its twin do.

    Args:
        client: The client; errors and threads have the name of its class.
        twin: Its blocking twin.

    Attributes:
        loop: The loop that the client belongs to, once it was used.
    """

    def __init__(self, client: object, twin: Any) -> None:
        self._kind, self._twin, self._pid = type(client).__name__, twin, os.getpid()
        self.loop: asyncio.AbstractEventLoop | None = None
        self._endings: Endings
        self._pools: list[ThreadPoolExecutor] = []
        self._threads = self.pool(CALLS_AT_A_TIME)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_started = self._is_ended = False
        self._is_running = False
        self._leaving, self._unwatch = QuietLock(), _nothing
        leave_warning_to_owner(twin)

    @property
    def has_lost_loop(self) -> bool:
        """Whether the client runs, and its loop is closed."""
        return self._is_running and self.loop is not None and self.loop.is_closed() and os.getpid() == self._pid

    def leave(self) -> None:
        """Ends the client where its loop is closed without an end of it; on any thread, which waits for that."""
        with self._leaving:
            if self.has_lost_loop:
                group = getattr(self._twin, "group", None)
                whose = self._kind if group is None else f"{self._kind} of the group {group}"
                _log.error("the loop of the %s was closed before its shutdown(): the client ends", whose)
                self._end()

    def warn_of(self, client: object) -> None:
        """Warns of the client, as it is dropped, where it runs on."""
        if self._is_running:
            group = getattr(self._twin, "group", None)
            whose = f"rmqfast.aio.{self._kind}"
            warn_unclosed(client, self._pid, whose if group is None else f"{whose} of the group {group}")

    async def start(self, start: Callable[[], object]) -> None:
        """Starts the twin, off the loop; where this is cancelled, what was started meanwhile ends again."""
        self.here()
        # before it has: whoever ends it meanwhile has its threads ended, too
        self._is_started = True
        starting = _on_a_thread(start)
        try:
            await asyncio.shield(asyncio.wrap_future(starting))
        except asyncio.CancelledError:
            _on_a_thread(partial(self._take_back, starting))
            raise
        self._is_running = True
        self._unwatch = WATCH.add(self)

    async def shutdown(self) -> None:
        """Ends the twin, off the loop, and the threads."""
        # of a loop that is closed nobody can use the client, and somebody has to end it
        if self.loop is None or not self.loop.is_closed():
            self.here()
        await asyncio.shield(asyncio.wrap_future(_on_a_thread(self._end)))

    def here(self) -> asyncio.AbstractEventLoop:
        """The running loop, if it is the client's.

        Raises:
            ClientError: It is another one.
            ForkError: The client is that of a parent process.
        """
        loop = asyncio.get_running_loop()
        if loop is self.loop and os.getpid() == self._pid:
            return loop
        name = f"{self._kind} of rmqfast.aio"
        if os.getpid() != self._pid:
            raise ForkError(f"the {name} is that of a parent process: make another one in this one")
        if self.loop is not None:
            raise ClientError(
                f"the {name} belongs to another event loop",
                next_step="a client is used in the loop that it was first used in: make another one for each loop",
            )
        self.loop, self._endings = loop, Endings(loop)
        return loop

    async def ask(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Does work on one of the client's threads, and waits for it."""
        return await self.ask_on(self._threads, work, *args, **named)

    async def ask_on(self, threads: ThreadPoolExecutor, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Does work on one of these threads, and waits for it."""
        loop = self.here()
        # as `asyncio.to_thread` does: what the task has in context variables, as a span, goes along
        context = copy_context()
        if not self._is_ended:
            try:
                asked = loop.run_in_executor(threads, partial(context.run, work, *args, **named))
            except RuntimeError:
                # the threads may have ended since it was looked
                if not self._is_ended:
                    raise
            else:
                return await asked
        # there is nothing left to wait for: it is told that the client has ended
        return work(*args, **named)

    async def ended(
        self,
        begin: Callable[[OnEnd[T]], bool],
        wait: Callable[[OnEnd[T]], object],
        threads: ThreadPoolExecutor | None = None,
    ) -> T:
        """Begins something whose end a callback is told, and waits for that.

        Args:
            begin: Begins it where nothing has to be waited for; says whether it did.
            wait: Begins it otherwise.
            threads: Who does that; those of all other calls unless given.
        """
        future: asyncio.Future[T] = self.here().create_future()
        on_end = partial(self._endings.end, future)
        try:
            if not begin(on_end):
                await self.ask_on(threads or self._threads, wait, on_end)
            return await future
        except BaseException:
            future.cancel()  # nobody looks at an end that comes later
            raise

    def begun(
        self, begin: Callable[[], Coroutine[Any, Any, T]], callback: Callable[[Any], object] | None
    ) -> asyncio.Task[T]:
        """A task of what is not awaited yet; a callback is called on the loop with the result or the error."""
        task = self.here().create_task(begin())
        self._tasks.add(task)  # the loop itself holds tasks weakly
        task.add_done_callback(self._tasks.discard)
        if callback is not None:
            task.add_done_callback(partial(_tell, callback))
        return task

    def pool(self, most: int) -> ThreadPoolExecutor:
        """So many threads, which end with the client."""
        pool = ThreadPoolExecutor(most, thread_name_prefix=f"rmqfast-aio-{self._kind}")
        self._pools.append(pool)
        return pool

    def _end(self) -> None:
        self._unwatch()
        self._is_running = False
        try:
            self._twin.shutdown()
        finally:
            self._is_ended = self._is_started
            if self._is_ended:
                for pool in self._pools:
                    pool.shutdown(wait=False)

    def _take_back(self, starting: ThreadFuture[object]) -> None:
        starting.exception()
        self._end()


class Called(Protocol):
    """A client of asyncio."""

    @property
    def _twin(self) -> Any:
        """Its blocking twin."""

    @property
    def _calls(self) -> Calls:
        """How it asks that."""


C = TypeVar("C", bound=Called)


async def start(self: Called) -> None:
    """Starts it, off the loop; where this is cancelled, what was started meanwhile ends again.

    Raises:
        ClientError: As `start` of the blocking client; or it belongs to another loop.
    """
    await self._calls.start(self._twin.start)


async def shutdown(self: Called) -> None:
    """Ends it, off the loop, which goes on meanwhile; once more is nothing.

    Calls that wait end with an error, or with their timeouts. Where this is cancelled, it ends nevertheless. A client
    whose loop is closed may be ended in another one.

    Raises:
        ClientError: It belongs to another loop.
    """
    await self._calls.shutdown()


async def enter(self: C) -> C:
    """Starts it; where that fails, nothing is left of it."""
    await self._calls.start(self._twin.__enter__)
    return self


async def leave(self: Called, *_: object) -> None:
    """Ends it."""
    await self._calls.shutdown()


def drop(self: Called) -> None:
    """Warns of a client that is dropped while it runs."""
    # its calls may be in the hands of what runs, as of a listener; it has none where its constructor raised
    calls: Calls | None = getattr(self, "_calls", None)
    if calls is not None:
        calls.warn_of(self)


def _nothing() -> None:
    """Does nothing: the loop is not watched yet."""


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
