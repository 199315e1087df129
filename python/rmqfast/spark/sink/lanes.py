"""Threads that work side by side, each in the order in which it was given its work."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Lanes"]

T = TypeVar("T")
_WAITING = 2


class Lanes(Generic[T]):
    """Does work in threads; after the first failure nothing more is done.

    Args:
        count: How many threads.
        work: What is done with each item; it should end soon once `stopping` is set.

    Attributes:
        stopping: Is set where nothing more is to be done.

    Example:
        >>> done = []
        >>> lanes = Lanes(2, done.append)
        >>> for number in range(6):
        ...     lanes.put(number % 2, number)
        >>> lanes.finish()
        >>> [number for number in done if number % 2]
        [1, 3, 5]
    """

    def __init__(self, count: int, work: Callable[[T], None]) -> None:
        self.stopping = threading.Event()
        self._work, self._failure = work, _Failure()
        # bounded: rows must not pile up in memory while a broker is slow
        self._queues: list[queue.Queue[T | None]] = [queue.Queue(_WAITING) for _ in range(count)]
        self._threads: list[threading.Thread | None] = [None] * count

    def put(self, lane: int, item: T) -> None:
        """Gives a lane work; waits while it has enough.

        Raises:
            Exception: What made some work fail.
        """
        self._failure.check()
        lane %= len(self._queues)
        # a partition with one queue needs one thread
        if self._threads[lane] is None:
            thread = threading.Thread(target=self._run, args=(lane,), name=f"rmqfast-sink-{lane}", daemon=True)
            self._threads[lane] = thread
            thread.start()
        # cannot wait for ever: a lane that failed goes on taking and drops what it takes
        self._queues[lane].put(item)

    def finish(self) -> None:
        """Waits until all is done.

        Raises:
            Exception: What made some work fail.
        """
        self._end()
        self._failure.check()

    def stop(self) -> None:
        """Does what is in flight, drops the rest."""
        self.stopping.set()
        self._end()

    def _end(self) -> None:
        for thread, waiting in zip(self._threads, self._queues, strict=True):
            if thread is not None:
                # behind all other work, which is done before the thread ends
                waiting.put(None)
        for thread in self._threads:
            if thread is not None:
                thread.join()
        self._threads = [None] * len(self._threads)

    def _run(self, lane: int) -> None:
        waiting = self._queues[lane]
        while (item := waiting.get()) is not None:
            if self.stopping.is_set():
                continue  # whoever puts must not wait for ever
            try:
                self._work(item)
            except Exception as error:  # noqa: BLE001 - it is raised where the next item comes from
                self._failure.set(error)
                self.stopping.set()


class _Failure:
    """What the first piece of work failed with that did."""

    def __init__(self) -> None:
        self._error: Exception | None = None
        self._lock = threading.Lock()

    def set(self, error: Exception) -> None:
        with self._lock:
            # what comes after the first failure mostly follows from it
            self._error = self._error or error

    def check(self) -> None:
        if self._error is not None:
            raise self._error
