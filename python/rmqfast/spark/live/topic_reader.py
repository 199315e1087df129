"""The data source's reader of a topic of a live cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from rmqfast._native import check_topic, plan_topic
from rmqfast.spark.live.options import LiveOptions
from rmqfast.spark.live.task import read_topic_piece
from rmqfast.spark.live.topic_read import TopicRead
from rmqfast.spark.pushdown import gets_filters
from rmqfast.spark.schema import agreed, row_schema

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
        RmqError: As `LiveOptions.of` and `rmqfast._native.check_topic` raise.
    """
    live = LiveOptions.of(options)
    schema = row_schema(live.columns)
    # no offsets yet: a stream with a checkpoint has no use for them
    check_topic(live.read(live.columns))
    return schema


def topic_reader(options: Mapping[str, str], columns: Sequence[str]) -> TopicReader:
    """The reader of some columns.

    Args:
        options: Those of the data source.
        columns: Those of the schema.

    Raises:
        RmqError: As `LiveOptions.of` raises, or other columns than the option `columns` says.
    """
    live = LiveOptions.of(options)
    read = live.read(agreed(live.columns, columns))
    # two classes: Spark fails a query whose reader has `pushFilters` while the setting is off
    return (_FilteringTopicReader if gets_filters(is_wanted=live.pushdown) else TopicReader)(read)


class TopicReader(DataSourceReader):
    """Plans once, in the driver: what a task reads is then fixed, however often and wherever it runs.

    Args:
        read: What is read.

    Source: `RocketMQScan`; `DataSourceReader` of PySpark.
    """

    def __init__(self, read: TopicRead) -> None:
        self._read = read
        self._is_empty = False

    def partitions(self) -> list[InputPartition]:
        """A task each."""
        # an empty list, which Spark makes one partition of None of
        return [] if self._is_empty else [InputPartition(piece) for piece in plan_topic(self._read)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Batches of one partition; where there is none, Spark 4.0 gives None, newer ones a partition of None."""
        if partition is not None and partition.value is not None:
            yield from read_topic_piece(self._read, partition.value)


class _FilteringTopicReader(TopicReader):
    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802  # Spark's name
        """Takes the filters that cut queues, and those on tags, exactly."""
        from rmqfast.spark.live.topic_filter import narrowed_topic

        self._read, rest, self._is_empty = narrowed_topic(self._read, filters)
        return iter(rest)
