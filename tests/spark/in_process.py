"""What Spark's driver and its workers ask of this package, asked in this process: no JVM is needed for that."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any

from rmqfast._native import TopicRead
from rmqfast.spark.live.task import read_topic_piece
from rmqfast.spark.partitions import StoreRead, plan_partitions
from rmqfast.spark.task import read_partition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceReader
    from pyspark.sql.types import StructType

Row = dict[str, Any]


def source_reader(options: Mapping[str, str], schema: StructType | None = None) -> DataSourceReader:
    """The reader of the data source `rocketmq`, as it comes to the workers."""
    from rmqfast.spark import RocketMQDataSource

    source = RocketMQDataSource(dict(options))
    reader: DataSourceReader = pickle.loads(pickle.dumps(source.reader(schema or source.schema())))  # noqa: S301
    return reader


def source_rows(options: Mapping[str, str]) -> list[Row]:
    """The rows that the data source `rocketmq` gives."""
    reader = source_reader(options)
    return rows_in(batch for part in reader.partitions() for batch in reader.read(part))


def partition_rows(read: StoreRead) -> list[Row]:
    """The rows of all partitions of a read, in physical order."""
    read = pickle.loads(pickle.dumps(read))  # noqa: S301
    return rows_in(batch for part in plan_partitions(read) for batch in read_partition(read, part))


def topic_rows(read: TopicRead) -> list[Row]:
    """The rows of all partitions of a read of live topics."""
    read = pickle.loads(pickle.dumps(read))  # noqa: S301
    return rows_in(batch for piece in read.plan() for batch in read_topic_piece(read, piece))


def rows_in(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    """Rows as those of `golden_stores`: timestamps in milliseconds, properties as a dict."""
    return [_plain(row) for batch in batches for row in batch.to_pylist()]


def _plain(row: Row) -> Row:
    for name in ("born_timestamp", "store_timestamp"):
        if name in row:
            row[name] = round(row[name].replace(tzinfo=UTC).timestamp() * 1000)
    if "properties" in row:
        row["properties"] = dict(row["properties"])
    return row


def column(rows: Sequence[Row], name: str) -> list[Any]:
    """One value of each row."""
    return [row[name] for row in rows]
