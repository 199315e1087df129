"""The data source's reader of topics of a live cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from rmqfast._native import SparkOptions, TopicRead
from rmqfast.spark.live.task import read_topic_piece
from rmqfast.spark.options import gets_filters
from rmqfast.spark.schema import row_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

__all__ = ["TopicReader", "checked_schema", "topic_reader"]


def checked_schema(options: Mapping[str, str]) -> StructType:
    """The schema of a read, once all is looked at that can be wrong: `load()` tells, not the first action.

    Args:
        options: Those of the data source.

    Raises:
        RmqError: As `TopicRead` and its `check` raise.
    """
    schema = row_schema(SparkOptions("topic batch", dict(options)).values["columns"])
    # no offsets yet: a stream with a checkpoint has no use for them
    TopicRead("topic batch", dict(options), schema.names).check()
    return schema


def topic_reader(options: Mapping[str, str], columns: Sequence[str]) -> TopicReader:
    """The reader of some columns.

    Args:
        options: Those of the data source.
        columns: Those of the schema.

    Raises:
        RmqError: As `TopicRead` raises.
    """
    read = TopicRead("topic batch", dict(options), columns)
    is_wanted = SparkOptions("topic batch", dict(options)).values["pushdown"]
    # two classes: Spark fails a query whose reader has `pushFilters` while the setting is off
    return (_FilteringTopicReader if gets_filters(is_wanted=is_wanted) else TopicReader)(read)


class TopicReader(DataSourceReader):
    """Plans once, in the driver: what a task reads is then fixed, however often and wherever it runs.

    Args:
        read: What is read.

    Source: `RocketMQScan`; `DataSourceReader` of PySpark.
    """

    def __init__(self, read: TopicRead) -> None:
        self._read = read

    def partitions(self) -> list[InputPartition]:
        """A task each."""
        # an empty list, which Spark makes one partition of None of
        return [InputPartition(piece) for piece in self._read.plan()]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Batches of one partition; where there is none, Spark 4.0 gives None, newer ones a partition of None."""
        if partition is not None and partition.value is not None:
            yield from read_topic_piece(self._read, partition.value)


class _FilteringTopicReader(TopicReader):
    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802  # Spark's name
        """Takes the filters that choose queues or cut them, and those on tags, exactly."""
        # PySpark 4.0 has no classes of filters to import
        from rmqfast.spark.filters import rest_of

        return iter(rest_of(self._take, filters))

    def _take(self, filters: list[tuple[str, str, list[object]]]) -> list[bool]:
        self._read, is_taken = self._read.take(filters)
        return is_taken
