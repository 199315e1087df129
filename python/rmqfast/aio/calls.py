"""Calls from an asyncio client to the blocking client behind it.

A client belongs to the loop in which it is first used. Blocking work runs on a few threads of the client or in
callbacks, never on the loop's thread or its default executor.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future as ThreadFuture
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar

from rmqfast.client.instance.exits import leave_warning_to_owner, warn_unclosed
from rmqfast.client.instance.scheduler import Scheduler
from rmqfast.errors import ClientError, ForkError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.system import after_fork
from rmqfast.threads import new_lock

_log = logger_of(__name__)

P = ParamSpec("P")
T = TypeVar("T")

#: Called once with a result or an error, on any thread.
OnEnd: TypeAlias = Callable[[T | BaseException], None]
#: Maximum concurrent calls of one client; further calls wait for a thread.
CALLS_AT_A_TIME = 8
#: Seconds between two checks for closed loops.
_INTERVAL = 1.0


class FutureResults:
    """Passes results from any thread to futures of an event loop. Several results wake the loop only once.

    Results for cancelled futures and closed loops are dropped.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._results: deque[tuple[asyncio.Future[object], object]] = deque()
        self._is_scheduled = False

    def put(self, future: asyncio.Future[T], result: T | BaseException) -> None:
        """Sets the result of a future, or an error that it raises. This happens when the loop next wakes up."""
        self._results.append((future, result))  # type: ignore[arg-type]  # a future takes what it is a future of
        # the scheduled call will also set this result
        if self._is_scheduled:
            return
        self._is_scheduled = True
        try:
            self._loop.call_soon_threadsafe(self._settle)
        except RuntimeError:
            # the loop is closed, and no task waits
            self._is_scheduled = False
            self._results.clear()

    def _settle(self) -> None:
        # before the first result is read: results added from now on schedule another wake-up
        self._is_scheduled = False
        for _ in range(len(self._results)):
            future, result = self._results.popleft()
            # cancelled
            if future.done():
                continue
            if isinstance(result, BaseException):
                future.set_exception(result)
            else:
                future.set_result(result)


class LoopWatch:
    """Shuts down clients that are running although their loop was closed. They would otherwise keep their queues.

    Its thread runs while there are clients.
    """

    _clients: set[weakref.ref[Calls]]
    _scheduler: Scheduler | None

    def __init__(self, interval: float = _INTERVAL) -> None:
        self._interval = interval
        self._clear()
        after_fork(self._clear)

    def add(self, client: Calls) -> Callable[[], None]:
        """Watches a client. Returns a function that stops watching it."""
        # weak, so that a dropped client is garbage collected and warns
        reference = weakref.ref(client)
        with self._lock:
            self._clients.add(reference)
            if self._scheduler is None:
                self._scheduler = Scheduler("rmqfast-loops")
                self._scheduler.every(self._interval, self._interval, self._check)
        return lambda: self._remove(reference)

    def _remove(self, reference: weakref.ref[Calls]) -> None:
        with self._lock:
            self._clients.discard(reference)
            if self._clients or self._scheduler is None:
                return
            scheduler, self._scheduler = self._scheduler, None
        # outside of the lock, because the thread may wait for it
        scheduler.stop(0)

    def _check(self) -> None:
        for reference in list(self._clients):
            client = reference()
            if client is None:
                self._remove(reference)
            elif client.has_lost_loop:
                client.leave()

    def _clear(self) -> None:
        # in a fork, too, which must not use its parent's clients
        self._lock = new_lock()
        self._clients = set()
        self._scheduler = None


WATCH = LoopWatch()


class Calls:
    """Runs calls to the blocking client behind an asyncio client. The first call sets `loop`."""

    def __init__(self, client: object, twin: Any) -> None:
        self._kind, self._twin, self._pid = type(client).__name__, twin, os.getpid()
        self.loop: asyncio.AbstractEventLoop | None = None
        self._results: FutureResults
        self._pools: list[ThreadPoolExecutor] = []
        self._threads = self.pool(CALLS_AT_A_TIME)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_started = self._is_ended = False
        self._is_running = False
        self._leaving, self._unwatch = QuietLock(), _do_nothing
        leave_warning_to_owner(twin)

    @property
    def has_lost_loop(self) -> bool:
        """Whether the client is running although its loop is closed."""
        return self._is_running and self.loop is not None and self.loop.is_closed() and os.getpid() == self._pid

    def leave(self) -> None:
        """Shuts the client down if its loop is closed. Blocks the calling thread."""
        with self._leaving:
            if self.has_lost_loop:
                group = getattr(self._twin, "group", None)
                whose = self._kind if group is None else f"{self._kind} of the group {group}"
                _log.error("the loop of the %s was closed before its shutdown(): the client ends", whose)
                self._end()

    def warn_of(self, client: object) -> None:
        if self._is_running:
            group = getattr(self._twin, "group", None)
            whose = f"rmqfast.aio.{self._kind}"
            warn_unclosed(client, self._pid, whose if group is None else f"{whose} of the group {group}")

    async def start(self, start: Callable[[], object]) -> None:
        """Starts the blocking client on a thread. If the task is cancelled, the client is shut down again."""
        self.here()
        # first, so that a concurrent shutdown also ends the threads
        self._is_started = True
        starting = _on_a_thread(start)
        try:
            # shielded: a thread cannot be cancelled
            await asyncio.shield(asyncio.wrap_future(starting))
        except asyncio.CancelledError:
            # waits for the start on a thread, then shuts down
            _on_a_thread(partial(self._undo_start, starting))
            raise
        self._is_running = True
        self._unwatch = WATCH.add(self)

    async def shutdown(self) -> None:
        """Shuts the blocking client down on a thread, and ends the threads of this object."""
        # nobody can use a client whose loop is closed, so any loop may end it
        if self.loop is None or not self.loop.is_closed():
            self.here()
        await asyncio.shield(asyncio.wrap_future(_on_a_thread(self._end)))

    def here(self) -> asyncio.AbstractEventLoop:
        """Returns the running loop. Raises if it is not the loop of the first call."""
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
        self.loop, self._results = loop, FutureResults(loop)
        return loop

    async def ask(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Runs a function on a thread of the client, and returns its result."""
        return await self.ask_on(self._threads, work, *args, **named)

    async def ask_on(self, threads: ThreadPoolExecutor, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Runs a function on a thread of the given pool, and returns its result."""
        loop = self.here()
        # like `asyncio.to_thread`: context variables of the task, such as a span, apply to the work
        context = copy_context()
        if not self._is_ended:
            try:
                asked = loop.run_in_executor(threads, partial(context.run, work, *args, **named))
            except RuntimeError:
                # a shutdown may have ended the threads since the check
                if not self._is_ended:
                    raise
            else:
                return await asked
        # runs on the loop, but does not block: the closed twin raises at once
        return work(*args, **named)

    async def wait_for_callback(
        self,
        begin: Callable[[OnEnd[T]], bool],
        wait: Callable[[OnEnd[T]], object],
        threads: ThreadPoolExecutor | None = None,
    ) -> T:
        """Starts an operation that ends with a callback, and awaits its result."""
        future: asyncio.Future[T] = self.here().create_future()
        on_end = partial(self._results.put, future)
        try:
            if not begin(on_end):
                await self.ask_on(threads or self._threads, wait, on_end)
            return await future
        except BaseException:
            # a later result is dropped
            future.cancel()
            raise

    def new_task(
        self, begin: Callable[[], Coroutine[Any, Any, T]], callback: Callable[[Any], object] | None
    ) -> asyncio.Task[T]:
        """Starts and returns a task. The callback is called on the loop with the result or the error."""
        task = self.here().create_task(begin())
        # the loop itself holds tasks weakly
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if callback is not None:
            task.add_done_callback(partial(_call_back, callback))
        return task

    def pool(self, most: int) -> ThreadPoolExecutor:
        """Returns a thread pool that is closed together with the client."""
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
                    # without waiting: this may run on one of these threads
                    pool.shutdown(wait=False)

    def _undo_start(self, starting: ThreadFuture[object]) -> None:
        # waits for the end of the start
        starting.exception()
        self._end()


class HasTwin(Protocol):
    @property
    def _twin(self) -> Any: ...

    @property
    def _calls(self) -> Calls: ...


C = TypeVar("C", bound=HasTwin)


async def start(self: HasTwin) -> None:
    """Starts the client on a thread. If the task is cancelled, the client is shut down again."""
    await self._calls.start(self._twin.start)


async def shutdown(self: HasTwin) -> None:
    """Shuts the client down on a thread; a second call does nothing.

    Calls in progress end with an error or a timeout. A cancelled shutdown continues. A client whose loop is closed may
    be shut down in another loop.
    """
    await self._calls.shutdown()


async def enter(self: C) -> C:
    """Starts the client. If that raises, the client is not left running."""
    await self._calls.start(self._twin.__enter__)
    return self


async def leave(self: HasTwin, *_: object) -> None:
    await self._calls.shutdown()


def drop(self: HasTwin) -> None:
    # a failed constructor has not set `_calls`
    calls: Calls | None = getattr(self, "_calls", None)
    if calls is not None:
        calls.warn_of(self)


def _do_nothing() -> None: ...


def _on_a_thread(work: Callable[[], T]) -> ThreadFuture[T]:
    # a thread of its own, so that it never queues behind other work
    pool = ThreadPoolExecutor(1, thread_name_prefix="rmqfast-aio")
    try:
        return pool.submit(work)
    finally:
        pool.shutdown(wait=False)


def _call_back(callback: Callable[[Any], object], task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        error = task.exception()
        callback(task.result() if error is None else error)
