"""The data source `rocketmq` of PySpark 4: batch reads of a store directory."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from rmqfast.errors import ArgumentError
from rmqfast.spark.options import SourceOptions
from rmqfast.spark.partitions import StoreRead, plan_partitions
from rmqfast.spark.schema import columns_of, row_schema
from rmqfast.spark.task import read_partition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

__all__ = ["RocketMQDataSource"]

_LOG = logging.getLogger("rmqfast.spark")
_PUSHDOWN_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"


class RocketMQDataSource(DataSource):
    """Messages of a store directory, by `spark.read.format("rocketmq").option("storePath", ...).load()`.

    Its options are those of `SourceOptions`; a schema given by `DataFrameReader.schema` chooses columns.

    Raises:
        ArgumentError: An unknown option, or a value out of range.
        UnknownTopicError: The store has no such topic.
        UnknownColumnError: The row has no such column.
        ExpressionError: `tags` or `sql` does not parse.
        StoreError: The store cannot be opened.

    Example:
        >>> spark = getfixture("spark")
        >>> spark.dataSource.register(RocketMQDataSource)
        >>> path = str(getfixture("golden_store")("basic-4.9.4"))
        >>> spark.read.format("rocketmq").option("storePath", path).option("topic", "fx_q1").load().count()
        1259

    Source: `RocketMQSourceProvider` of rocketmq-spark.
    """

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._options = SourceOptions.of(options)
        # now, not at the first action: whether the store, the topic, the columns, the tags and the condition are there
        read = self._options.read(self._options.columns)
        with read.open() as store:
            store.plan(read.request, cut_bytes=1 << 62)

    @classmethod
    def name(cls) -> str:
        """The name for `spark.read.format`."""
        return "rocketmq"

    def schema(self) -> StructType:
        """The row, or the option `columns` of it."""
        return row_schema(self._options.columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of the columns that `schema` has."""
        read = self._options.read(self._agreed(columns_of(schema)))
        if not self._options.pushdown:
            return _StoreReader(read)
        if _PUSHDOWN_WORKER in sys.orig_argv:
            return _FilteringStoreReader(read)
        # a reader that takes filters fails the query where the configuration is off, and here nobody says whether it is
        _LOG.warning("pushdown: no filter came; is spark.sql.python.filterPushdown.enabled on (PySpark 4.1 or newer)?")
        return _StoreReader(read)

    def _agreed(self, columns: Sequence[str]) -> Sequence[str]:
        wanted = self._options.columns
        if wanted is not None and tuple(columns) != wanted:
            raise ArgumentError(f"schema: expected the columns of the option columns, {wanted}, got {tuple(columns)}")
        return columns


class _StoreReader(DataSourceReader):
    """Without `pushFilters`: to have it is to fail where Spark does not push filters, which it does not by itself."""

    def __init__(self, read: StoreRead) -> None:
        self._read = read
        self._is_empty = False

    def partitions(self) -> list[InputPartition]:
        """A task each."""
        return [] if self._is_empty else [InputPartition(part) for part in plan_partitions(self._read)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Batches of one partition; Spark makes a partition of None where there are none."""
        if partition.value is not None:
            yield from read_partition(self._read, partition.value)


class _FilteringStoreReader(_StoreReader):
    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802  # Spark's name
        """Takes the filters that a scan does exactly."""
        from rmqfast.spark.filters import ReadFilter

        taken = ReadFilter(self._read)
        rest = list(taken.rest_of(filters))
        self._read, self._is_empty = taken.read, taken.is_empty
        return iter(rest)
