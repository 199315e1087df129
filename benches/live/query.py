"""A running stream of Spark with a checkpoint of its own, and its batches as Spark's progress tells them."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from pyspark.sql import SparkSession

from data import scratch_dir
from peer import Failed

LOOKS = 0.02  # seconds between two looks at the progress
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


@dataclass(frozen=True)
class MicroBatch:
    """One batch with rows, from its trigger to its commit, in seconds since 1970."""

    began: float
    ended: float
    rows: int


class Query:
    """A query that reads all columns of a source, ended by `with`.

    Args:
        spark: A session that knows the source.
        source: Its format.
        options: Its options.
        start: Gives a writer its sink and its trigger, and starts it.
    """

    def __init__(
        self, spark: SparkSession, source: str, options: Mapping[str, str], *, start: Callable[[Any], Any]
    ) -> None:
        frame = spark.readStream.format(source).options(**options).load()
        self._checkpoint = tempfile.mkdtemp(dir=scratch_dir(), prefix="checkpoint-")
        # a query of the JVM that was started there knows the same methods
        self._query = start(frame.writeStream.option("checkpointLocation", self._checkpoint))

    @property
    def batches(self) -> list[MicroBatch]:
        """Those with rows, of the last hundred."""
        return [micro_batch(one) for one in self._query.recentProgress if one["numInputRows"]]

    @property
    def numbered(self) -> int:
        last = self._query.lastProgress
        return 0 if last is None else last["batchId"] + (1 if last["numInputRows"] else 0)

    def wait_for_batches(self, count: int, seconds: float, *, looks: float = LOOKS) -> None:
        """Waits for so many batches in all."""
        self.wait(lambda: self.numbered >= count, f"{count} batches", seconds, looks=looks)

    def wait_for_rows(self, rows: int, seconds: float) -> None:
        """Waits for so many rows in all, of the last hundred batches."""
        self.wait(lambda: sum(one.rows for one in self.batches) >= rows, f"{rows} rows", seconds, looks=0.2)

    def wait(self, there: Callable[[], bool], what: str, seconds: float, *, looks: float = LOOKS) -> None:
        """Waits until something is there, or the query is gone."""
        end = time.monotonic() + seconds
        while not there():
            if time.monotonic() > end or not self._query.isActive:
                raise Failed(f"the stream has not had {what} after {seconds:.0f} s: {self._query.exception()}")
            time.sleep(looks)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._query.stop()
        shutil.rmtree(self._checkpoint, ignore_errors=True)


def micro_batch(progress: Any) -> MicroBatch:
    """A batch as its progress tells it."""
    began = datetime.fromisoformat(progress["timestamp"]).timestamp()
    return MicroBatch(began, began + progress["durationMs"]["triggerExecution"] / 1000, progress["numInputRows"])


@contextmanager
def checkpoint_manager(spark: SparkSession, name: str) -> Iterator[None]:
    """A query that starts meanwhile has this manager of checkpoint files; "": Spark's default."""
    package = "org.apache.spark.sql.execution.streaming."
    if tuple(map(int, spark.version.split(".")[:2])) >= (4, 1):
        package += "checkpointing."
    if name:
        spark.conf.set(MANAGER, package + name)
    try:
        yield
    finally:
        spark.conf.unset(MANAGER)
