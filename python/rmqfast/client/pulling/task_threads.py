"""Threads that do what is due, and as many of them as are needed at once.

Source: `DefaultLitePullConsumerImpl.scheduledThreadPoolExecutor`.
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
from collections.abc import Callable
from itertools import count

_log = logging.getLogger(__name__)


class TaskThreads:
    """Does work after a delay, on daemon threads; what work raises is logged.

    Args:
        name: Of the threads.
        most: Threads at most.
        clock: Tells the time in seconds.
    """

    def __init__(self, name: str, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._most, self._clock = name, most, clock
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._is_closed = False

    def later(self, delay: float, work: Callable[[], None]) -> None:
        """Does work after `delay` seconds; nothing once it is closed."""
        with self._changed:
            if self._is_closed:
                return
            heapq.heappush(self._due, (self._clock() + delay, next(self._numbers), work))
            self._see_to_a_thread()
            self._changed.notify()

    def close(self, timeout: float = 0.0) -> None:
        """Does nothing more; waits for what is being done.

        Args:
            timeout: How long to wait, in seconds.
        """
        with self._changed:
            self._is_closed = True
            self._due.clear()
            self._changed.notify_all()
        deadline = self._clock() + timeout
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, deadline - self._clock()))

    def _see_to_a_thread(self) -> None:
        """Somebody shall wait for what is due next, whatever the others are busy with."""
        if self._idle == 0 and len(self._threads) < self._most:
            thread = threading.Thread(target=self._run, name=f"{self._name}-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            self._idle += 1
            thread.start()

    def _run(self) -> None:
        while (work := self._next()) is not None:
            try:
                work()
            except Exception:  # noqa: BLE001 - there is nobody else to tell
                _log.exception("a task of %s failed", self._name)
            with self._changed:
                self._idle += 1

    def _next(self) -> Callable[[], None] | None:
        """What is due; the thread is idle until then."""
        with self._changed:
            while not self._is_closed:
                left = self._due[0][0] - self._clock() if self._due else None
                if left is None or left > 0:
                    self._changed.wait(left)
                    continue
                work = heapq.heappop(self._due)[2]
                self._idle -= 1
                if self._due:
                    self._see_to_a_thread()
                return work
            return None
