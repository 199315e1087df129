"""Runs tasks at given times.

Source: `MQClientInstance.startScheduledTask`, `DefaultLitePullConsumerImpl.scheduledThreadPoolExecutor`.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from rmqfast.logs import logger_of
from rmqfast.system import monotonic
from rmqfast.threads import Thread, is_current, new_condition, new_thread

_log = logger_of(__name__)


@dataclass(order=True, slots=True)
class Handle:
    """A scheduled task, which can be cancelled.

    Attributes:
        at: Due time, by the scheduler's clock.
        work: The function to call.
        period: Seconds between runs; None for a single run.
        is_cancelled: Whether `cancel` was called.
    """

    at: float
    _number: int
    work: Callable[[], object] = field(compare=False, repr=False)
    period: float | None = field(compare=False, default=None)
    is_cancelled: bool = field(compare=False, default=False)

    def cancel(self) -> None:
        """Prevents further runs. A run that has begun continues."""
        self.is_cancelled = True


class TimerTable:
    """Tasks sorted by due time. Has no clock and no thread."""

    def __init__(self) -> None:
        self._heap: list[Handle] = []
        self._numbers = itertools.count()

    def add(self, at: float, work: Callable[[], object], *, period: float | None = None) -> Handle:
        """Adds a task that is due at time `at` and then every `period` seconds. Returns its handle."""
        handle = Handle(at, next(self._numbers), work, period)
        heapq.heappush(self._heap, handle)
        return handle

    def wait(self, now: float) -> float | None:
        """Returns the seconds until the next task is due. None if there are no tasks."""
        while self._heap and self._heap[0].is_cancelled:
            heapq.heappop(self._heap)
        return max(0.0, self._heap[0].at - now) if self._heap else None

    def take_due(self, now: float) -> Callable[[], object] | None:
        """Returns the first task that is due, and sets its next due time. None if no task is due. Skips missed runs."""
        if self.wait(now) != 0.0:
            return None
        handle = heapq.heappop(self._heap)
        if handle.period is not None:
            missed = max(0.0, (now - handle.at) // handle.period)
            handle.at += (missed + 1) * handle.period
            heapq.heappush(self._heap, handle)
        return handle.work


class Scheduler:
    """Daemon threads that run tasks when they are due. The first task starts the first thread.

    Args:
        name: Name of the threads.
        threads: Maximum number of threads.
    """

    def __init__(self, name: str = "rmqfast-timer", threads: int = 1) -> None:
        self._name, self._most = name, threads
        self._changed = new_condition()
        self._table = TimerTable()
        self._threads: list[Thread] = []
        self._idle = 0
        self._is_stopped = False

    def later(self, delay_seconds: float, work: Callable[[], object]) -> Handle:
        """Runs a task once, after `delay_seconds`. Returns a handle to cancel it."""
        return self._add(delay_seconds, work, None)

    def every(self, initial: float, period: float, work: Callable[[], object]) -> Handle:
        """Runs a task periodically. Returns a handle to cancel it.

        Args:
            initial: Seconds until the first run.
            period: Seconds between runs; runs that a slow run misses are skipped.
            work: The task; exceptions are logged, and the task continues.
        """
        return self._add(initial, work, period)

    def stop(self, timeout: float | None = None) -> bool:
        """Drops all tasks, and waits up to `timeout` seconds for running tasks. Returns whether all have ended."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
        deadline = None if timeout is None else monotonic() + timeout
        others = [thread for thread in self._threads if not is_current(thread)]
        for thread in others:
            thread.join(None if deadline is None else max(0.0, deadline - monotonic()))
        return not any(thread.is_alive() for thread in others)

    def _add(self, delay: float, work: Callable[[], object], period: float | None) -> Handle:
        with self._changed:
            handle = self._table.add(monotonic() + delay, work, period=period)
            self._have_one_wait()
        return handle

    def _have_one_wait(self) -> None:
        """Makes sure that one thread waits for the next due task, even if all others are busy."""
        # one thread is enough: any thread that wakes waits for the first due task
        if self._idle or self._is_stopped:
            self._changed.notify()
        elif len(self._threads) < self._most:
            name = self._name if self._most == 1 else f"{self._name}-{len(self._threads)}"
            thread = new_thread(self._run, name=name)
            # counted before it runs, or a task added meanwhile would start another thread
            self._threads.append(thread)
            self._idle += 1
            thread.start()

    def _run(self) -> None:
        while (work := self._next()) is not None:
            try:
                work()
            except Exception:  # noqa: BLE001 - later tasks must still run
                _log.exception("%s: %s failed", self._name, getattr(work, "__qualname__", work))
            # the task may refer to the client, which must not be kept alive until the next task is due
            del work
            with self._changed:
                self._idle += 1

    def _next(self) -> Callable[[], object] | None:
        """Waits for the next due task and returns it. None once the scheduler is stopped."""
        with self._changed:
            while not self._is_stopped:
                now = monotonic()
                if (work := self._table.take_due(now)) is not None:
                    self._idle -= 1
                    # this thread is busy from now on: another thread must wait for the next due task
                    if self._table.wait(now) is not None:
                        self._have_one_wait()
                    return work
                self._changed.wait(self._table.wait(now))
            return None
