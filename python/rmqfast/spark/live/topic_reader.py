"""The data source's reader of topics of a live cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from rmqfast._native import SparkOptions, TopicRead
from rmqfast.spark.live.task import read_topic_piece
from rmqfast.spark.options import gets_filters
from rmqfast.spark.schema import columns_of, struct_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType


def checked_schema(options: Mapping[str, str]) -> StructType:
    """Returns the schema of a read. Checks all options now, so that `load()` raises instead of the first action."""
    schema = struct_of(SparkOptions("topic batch", dict(options)).row())
    # No offsets yet, since a stream with a checkpoint does not need them.
    TopicRead("topic batch", dict(options), schema.names).check()
    return schema


def topic_reader(options: Mapping[str, str], schema: StructType) -> TopicReader:
    parsed = SparkOptions("topic batch", dict(options))
    read = TopicRead("topic batch", dict(options), columns_of(schema, parsed))
    is_wanted = parsed.values["pushdown"]
    # Two classes, since Spark fails a query whose reader has `pushFilters` while the setting is off.
    return (_FilteringTopicReader if gets_filters(is_wanted=is_wanted) else TopicReader)(read)


class TopicReader(DataSourceReader):
    """Reads topics. Plans once, in the driver, so that a task that runs again reads the same messages."""

    def __init__(self, read: TopicRead) -> None:
        self._read = read

    def partitions(self) -> list[InputPartition]:
        # From an empty list, Spark makes one partition of None.
        return [InputPartition(piece) for piece in self._read.plan()]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yields the batches of a partition. Without messages, Spark passes None or a partition with the value None."""
        if partition is not None and partition.value is not None:
            yield from read_topic_piece(self._read, partition.value)


class _FilteringTopicReader(TopicReader):
    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802  # Spark's name
        """Applies filters on queues, offsets, times and tags where a read can do it exactly. Returns the others."""
        # PySpark 4.0 lacks the filter classes, so import only here.
        from rmqfast.spark.filters import rest_of

        return iter(rest_of(self._take, filters))

    def _take(self, filters: list[tuple[str, str, list[object]]]) -> list[bool]:
        self._read, is_taken = self._read.take(filters)
        return is_taken
