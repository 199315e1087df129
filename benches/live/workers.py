"""Spark's standalone cluster for the question whether two workers do more than one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.spark.cluster import Cluster


class Workers(Cluster):
    """A master and workers, of one core each for Spark; and for the kernel, too, where they are held to it.

    The directory is emptied: it takes their logs and what executors are given.

    A worker's JVM and its Python process share out what is one task: not held, one worker keeps more than a core busy.
    """

    def __init__(self, directory: Path, count: int, *, held: bool) -> None:
        self._held, self._begun = held, 0
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        super().__init__(directory, count)

    def _start(self, host: str, role: str, *arguments: str) -> None:
        all_cores = sorted(os.sched_getaffinity(0))
        if self._held and role == "worker.Worker":
            os.sched_setaffinity(0, {all_cores[self._begun % len(all_cores)]})  # what it starts inherits this
            self._begun += 1
        try:
            super()._start(host, role, *arguments)
        finally:
            os.sched_setaffinity(0, all_cores)
