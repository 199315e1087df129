"""A data source whose batches are ready: what a batch and a stream of any source in Python cost Spark by themselves.

It stands in a module of its own, as Spark's workers import it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

import arrow_rows
from data import CHUNK, QUEUES, Dataset

BATCH_BYTES = 1 << 20


class ReadySource(DataSource):
    """Options: `body`, `rows`, and `most` rows a batch of a stream; a task for each of the topic's queues."""

    @classmethod
    def name(cls) -> str:
        """For `spark.read.format`."""
        return "ready"

    def schema(self) -> StructType:
        """All columns of a stored row."""
        return from_arrow_schema(pa.schema(list(arrow_rows.COLUMNS.items())))

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002  # as PySpark calls it
        """All rows."""
        return ReadyReader(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        """All rows, some a batch."""
        return ReadyStreamReader(self.options)


class ReadyReader(DataSourceReader):
    """The batch read."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._body, self._rows = int(options["body"]), int(options["rows"])

    def partitions(self) -> list[InputPartition]:
        """One for each queue."""
        return shares(self._rows)

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The ready batch again and again."""
        return repeated(self._body, partition.value)


class ReadyStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The stream; its offset is the rows so far."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._body, self._rows, self._most = (int(options[name]) for name in ("body", "rows", "most"))

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """None yet."""
        return {"rows": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: ARG002, N802
        """A batch more."""
        return {"rows": min(start["rows"] + self._most, self._rows)}

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """As the option says."""
        return ReadMaxRows(self._most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """It ends anyhow."""

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """One for each queue."""
        return shares(end["rows"] - start["rows"])

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The ready batch again and again."""
        return repeated(self._body, partition.value)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing to be done."""


def shares(rows: int) -> list[InputPartition]:
    """The rows of a batch, in equal parts."""
    return [InputPartition(rows // QUEUES) for _ in range(QUEUES)] if rows else []


def repeated(body: int, rows: int) -> Iterator[pa.RecordBatch]:
    """So many rows."""
    one = ready(body)
    while rows > 0:
        yield one.slice(0, rows)
        rows -= one.num_rows


@cache
def ready(body: int) -> pa.RecordBatch:
    """About 1 MiB of bodies; made once in a worker."""
    rows = min(BATCH_BYTES // body, CHUNK)
    return arrow_rows.stored(Dataset("ready", body, rows), 0, rows)
