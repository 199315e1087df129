"""What is done now and then.

Source: `BrokerController.initialize`, which schedules the same work.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Job", "Timer"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """Work that is done again and again.

    Attributes:
        work: Does it once.
        first: Seconds until the first time.
        interval: Seconds from its end to the next time; asked each time, as it may be configured anew.
    """

    work: Callable[[], object]
    first: float
    interval: Callable[[], float]


class Timer:
    """One thread that does some jobs, each in its time; one that fails is logged, and done again."""

    def __init__(self, name: str, jobs: Sequence[Job]) -> None:
        start = time.monotonic()
        self._due = [start + job.first for job in jobs]
        self._jobs = jobs
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Does no job any more, and waits for the one that is done now: two seconds at most."""
        self._stopped.set()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=2)

    def _run(self) -> None:
        while not self._stopped.wait(max(0.0, min(self._due) - time.monotonic())):
            for number, job in enumerate(self._jobs):
                if self._due[number] <= time.monotonic() and not self._stopped.is_set():
                    self._do(job)
                    self._due[number] = time.monotonic() + job.interval()

    @staticmethod
    def _do(job: Job) -> None:
        try:
            job.work()
        except Exception:  # noqa: BLE001 - the next job, and the next time, are not to suffer
            _log.exception("%r failed", job.work)
