"""A stream that sums up each of its batches, as the batch reads are summed up, and notes when that was done."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from pyspark.sql import DataFrame, SparkSession

from data import scratch_dir
from peer import Failed
from processes import own_seconds
from spark_peers import summed


@dataclass(frozen=True)
class Trigger:
    """One batch: when it was summed up, by the clock of perf_counter, and the CPU time of Spark by then.

    `lag` is what its broker had more by then.
    """

    ended: float
    cpu_seconds: float
    rows: int
    bytes: int
    lag: int


class SummingStream:
    """A running query with a checkpoint of its own, ended by `with`.

    Args:
        spark: A session that knows the data source.
        options: Those of the data source, from the beginning of a topic that is new or does not change.
        trigger: When batches begin.
        with_lag: Whether the broker is asked behind each batch how far it is.
        source: The data source's name.
    """

    def __init__(
        self,
        spark: SparkSession,
        options: Mapping[str, str],
        trigger: Mapping[str, Any],
        *,
        with_lag: bool = False,
        source: str = "rocketmq",
    ) -> None:
        self.triggers: list[Trigger] = []
        self._options, self._with_lag = options, with_lag
        self._checkpoint = tempfile.mkdtemp(dir=scratch_dir(), prefix="checkpoint-")
        frame = spark.readStream.format(source).options(**options).load()
        writer = frame.writeStream.foreachBatch(self._sum_up).option("checkpointLocation", self._checkpoint)
        self._query = writer.trigger(**trigger).start()

    @property
    def rows(self) -> int:
        """Messages so far."""
        return sum(one.rows for one in self.triggers)

    @property
    def bytes(self) -> int:
        """Bytes of their bodies."""
        return sum(one.bytes for one in self.triggers)

    @property
    def phases(self) -> dict[str, float]:
        """Mean milliseconds of each phase of the batches behind the first, as Spark tells them."""
        told = [one["durationMs"] for one in self._query.recentProgress if one["numInputRows"]][1:]
        return {name: statistics.mean(one.get(name, 0) for one in told) for name in told[0]} if told else {}

    def wait_for_end(self, seconds: float) -> None:
        """Waits until a query that has an end is there."""
        if not self._query.awaitTermination(int(seconds)):
            raise Failed(f"the stream did not end within {seconds:.0f} s: {self.rows} rows")

    def wait_for_rows(self, rows: int, seconds: float) -> None:
        """Waits for so many messages in all."""
        end = time.monotonic() + seconds
        while self.rows < rows:
            if time.monotonic() > end or not self._query.isActive:
                raise Failed(f"the stream has {self.rows} of {rows} rows: {self._query.exception()}")
            time.sleep(0.05)

    def _sum_up(self, frame: DataFrame, _number: int) -> None:
        found = summed(lambda: frame)
        ended = time.perf_counter()
        lag = self._stored() - self.rows - found["rows"] if self._with_lag else 0
        self.triggers.append(Trigger(ended, own_seconds(), found["rows"], found["bytes"], lag))

    def _stored(self) -> int:
        import rmqfast

        with rmqfast.Admin(name_server=self._options["nameServer"]) as admin:
            return sum(queue.max_offset for queue in admin.topics.status(self._options["topic"]))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._query.stop()
        shutil.rmtree(self._checkpoint, ignore_errors=True)
