"""Threads that consume messages.

Source: RocketMQ's `ConsumeMessageConcurrentlyService`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from rmqfast.logs import logger_of
from rmqfast.system import monotonic
from rmqfast.threads import SimpleQueue, is_current, new_event, new_lock, new_thread, sleep

_log = logger_of(__name__)

Task = TypeVar("Task")

#: Seconds between checks whether waiting tasks need more threads.
_LOOK = 0.002
#: Weight of the previous checks in the moving averages.
_FADES = 0.8
#: Seconds per task above which more threads pay off.
_LONG = 0.0001
#: Number of checks without waiting tasks after which checking stops.
_LAST_LOOKS = 50


class Workers(Generic[Task]):
    """Daemon threads that run tasks in the order of submission.

    While tasks take microseconds, one thread runs all of them, because more threads would compete for the GIL. While
    tasks take longer and others wait, each check doubles the active threads. Without tasks all threads sleep, and half
    as many start the next time.
    """

    def __init__(self, run: Callable[[Task], object], threads: int, name: str) -> None:
        self._run = run
        self._tasks: deque[Task] = deque()
        self._wakes: SimpleQueue[None] = SimpleQueue()
        self._busy_lock, self._is_looked_at = new_lock(), new_event()
        self._busy = self._started = 0
        self._first = 1
        self._is_stopped = False
        self._threads = [new_thread(self._work, name=f"{name}-{number}") for number in range(threads)]
        self._looker = new_thread(self._look, name=f"{name}-look")

    @property
    def waiting(self) -> int:
        return len(self._tasks)

    def start(self) -> None:
        for thread in (*self._threads, self._looker):
            thread.start()

    def submit(self, tasks: Iterable[Task]) -> None:
        if self._is_stopped:
            return
        self._tasks.extend(tasks)
        if not self._is_looked_at.is_set():
            self._is_looked_at.set()
        with self._busy_lock:
            if not self._busy:
                self._wake(min(self._first, len(self._tasks)))
                self._first = max(1, self._first // 2)

    def stop(self, timeout: float) -> bool:
        self._is_stopped = True
        self._tasks.clear()
        self._is_looked_at.set()
        for _ in self._threads:
            self._wakes.put(None)
        until = monotonic() + timeout
        for thread in self._threads:
            if thread.ident is not None and not is_current(thread):
                thread.join(max(0.0, until - monotonic()))
        return not any(thread.is_alive() for thread in self._threads if not is_current(thread))

    def _wake(self, count: int) -> None:
        count = min(count, len(self._threads) - self._busy)
        self._busy += count
        for _ in range(count):
            self._wakes.put(None)

    def _work(self) -> None:
        while not self._is_stopped:
            self._wakes.get()
            while not self._is_stopped:
                self._do_tasks()
                with self._busy_lock:
                    # under the lock, so that `submit` either sees a busy thread or wakes one
                    if not self._tasks:
                        self._busy -= 1
                        break

    def _do_tasks(self) -> None:
        tasks, run = self._tasks, self._run
        while not self._is_stopped:
            try:
                task = tasks.popleft()
            except IndexError:
                return
            # not atomic: a lost count does not matter
            self._started += 1
            try:
                run(task)
            except BaseException:  # noqa: BLE001 - a failing task must not end the thread
                _log.exception("%r failed", task)
            # otherwise the thread would keep the messages alive until its next task
            del task

    def _look(self) -> None:
        while not self._is_stopped:
            self._is_looked_at.wait()
            self._is_looked_at.clear()
            in_vain, spent, tasks = 0, 0.0, 0.0
            while in_vain < _LAST_LOOKS and not self._is_stopped:
                begun, since = self._started, monotonic()
                sleep(_LOOK)
                spent = spent * _FADES + (monotonic() - since) * self._busy
                tasks = tasks * _FADES + self._started - begun
                in_vain = 0 if self._tasks else in_vain + 1
                if self._tasks and spent > tasks * _LONG:
                    self._double()

    def _double(self) -> None:
        with self._busy_lock:
            self._wake(max(1, self._busy))
            self._first = max(1, self._busy // 2)
