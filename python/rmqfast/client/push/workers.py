"""Threads that consume.

Source: the `ThreadPoolExecutor` of `ConsumeMessageConcurrentlyService`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import Generic, TypeVar

_log = logging.getLogger(__name__)

Task = TypeVar("Task")


class Workers(Generic[Task]):
    """Daemon threads that do tasks in the order in which they come, each as soon as a thread is free.

    One thread is woken at a time, and wakes the next one before it begins, where there is more to do: tasks that take
    microseconds are done by the thread that runs already, tasks that wait get all threads.

    Args:
        run: Does a task; what it raises is logged.
        threads: How many threads.
        name: Of the threads.
    """

    def __init__(self, run: Callable[[Task], object], threads: int, name: str) -> None:
        self._run = run
        self._tasks: deque[Task] = deque()
        self._wakes: SimpleQueue[None] = SimpleQueue()
        self._is_waking = self._is_stopped = False
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True) for number in range(threads)
        ]

    @property
    def waiting(self) -> int:
        """How many tasks wait for a thread."""
        return len(self._tasks)

    def start(self) -> None:
        """Starts the threads."""
        for thread in self._threads:
            thread.start()

    def submit(self, tasks: Iterable[Task]) -> None:
        """Has tasks done; nothing after `stop`."""
        if self._is_stopped:
            return
        self._tasks.extend(tasks)
        self._wake_one()

    def stop(self, timeout: float) -> bool:
        """Ends the threads: tasks that wait are not begun, those that run are waited for.

        Args:
            timeout: How long to wait, in seconds.

        Returns:
            Whether nothing runs any more, but for the caller.
        """
        self._is_stopped = True
        self._tasks.clear()
        for _ in self._threads:
            self._wakes.put(None)
        until = time.monotonic() + timeout
        for thread in self._threads:
            if thread.ident is not None and thread is not threading.current_thread():
                thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads if thread is not threading.current_thread())

    def _wake_one(self) -> None:
        # whoever is woken clears the flag before it looks for tasks, so that none is left behind
        if not self._is_waking:
            self._is_waking = True
            self._wakes.put(None)

    def _work(self) -> None:
        tasks, run = self._tasks, self._run
        while True:
            self._wakes.get()
            self._is_waking = False
            while not self._is_stopped:
                try:
                    task = tasks.popleft()
                except IndexError:
                    break
                if tasks and not self._is_waking:
                    self._wake_one()
                try:
                    run(task)
                except BaseException:  # noqa: BLE001 - one task's defect is not the end of the thread
                    _log.exception("%r failed", task)
                del task  # or the thread would keep its messages until the next one
            if self._is_stopped:
                return
