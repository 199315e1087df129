"""The data source `rocketmq` of PySpark 4. It reads a store directory or a cluster's topics, and writes to a topic.

Source: `RocketMQSourceProvider` of rocketmq-spark.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)

from rmqfast._native import with_schema_text
from rmqfast.errors import ArgumentError
from rmqfast.spark.options import SourceOptions, gets_filters, names_a_cluster
from rmqfast.spark.partitions import StoreRead, plan_reads, with_topic
from rmqfast.spark.schema import columns_of, struct_of
from rmqfast.spark.task import read_partition
from rmqfast.spark.topic_writer import stream_writer, topic_writer

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType


_LOG = logging.getLogger("rmqfast.spark")


class RocketMQDataSource(DataSource):
    """Messages of store directories, by `spark.read.format("rocketmq").option("storePath", ...).load()`.

    The options are listed in `docs/reference/options-spark.md`; a schema given by `DataFrameReader.schema` chooses
    columns. With the option `nameServer`, the source reads topics of a live cluster.

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
    """

    def __init__(self, options: dict[str, str]) -> None:
        _check_no_table(options)
        # read in the driver, since executors may not have the file of a schema
        options = with_schema_text(dict(options))
        super().__init__(options)
        if names_a_cluster(options):
            return  # `schema` and `reader` check the options, since `writer` has others
        stores = SourceOptions.of_stores(options)
        self._options = stores[0]
        # Checked now, not at the first action: schema of bodies, stores, topic, columns, tags and SQL condition.
        self._options.parsed.row()
        if any(store.values["store_hosts"] is not None for store in stores):
            _LOG.warning("option storeHosts: a source in Python cannot ask Spark for hosts; rocketmq-columnar can")
        reads = [store.read_of_all(store.columns) for store in stores]
        known = with_topic(reads)
        self._stores = [store for store, read in zip(stores, reads, strict=True) if read in known]
        for read in self._reads(self._options.columns):
            with read.open() as opened:
                opened.plan(read.request, cut_bytes=1 << 62)

    @classmethod
    def name(cls) -> str:
        """Returns the name for `spark.read.format`."""
        return "rocketmq"

    def schema(self) -> StructType:
        """Returns all columns of the row, or those of the option `columns`. For a live cluster, checks all options."""
        if names_a_cluster(self.options):
            from rmqfast.spark.live.topic_reader import checked_schema

            return checked_schema(self.options)
        return struct_of(self._options.parsed.row())

    def reader(self, schema: StructType) -> DataSourceReader:
        """Returns the reader of the schema's columns."""
        if names_a_cluster(self.options):
            from rmqfast.spark.live.topic_reader import topic_reader

            return topic_reader(self.options, schema)
        # Read the options again, since offsets refer to the store at the time of the action.
        reads = self._reads(columns_of(schema, self._options.parsed))
        return (_FilteringStoreReader if gets_filters(is_wanted=self._options.values["pushdown"]) else _StoreReader)(
            reads
        )

    def _reads(self, columns: Sequence[str] | None) -> list[StoreRead]:
        """Returns the reads of the stores. Offsets are resolved against what they have now."""
        return [store.read(columns) for store in self._stores]

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark's name
        """Returns the stream reader of the schema's columns."""
        if names_a_cluster(self.options):
            from rmqfast.spark.live.stream_reader import topic_stream_reader

            return topic_stream_reader(self.options, schema)
        from rmqfast.spark.live.stream_reader import store_stream_reader

        return store_stream_reader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001  # as PySpark calls it
        """Returns the sink of a batch, which sends rows to a topic. `docs/spark-sink.md` describes its options."""
        return topic_writer(dict(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: FBT001, N802
        """Returns the sink of a stream, with the options of `writer`."""
        return stream_writer(dict(self.options), schema, overwrite=overwrite)


def _check_no_table(options: Mapping[str, str]) -> None:
    """Refuses to be the source of a table, because Spark's `PythonDataSourceV2.getTable` drops the options."""
    if not options or "provider" in {name.lower() for name in options}:
        raise ArgumentError(
            "CREATE TABLE: Spark reads a table of a source in Python without its options; "
            "create it USING `rocketmq-columnar`, or a TEMPORARY VIEW USING rocketmq"
        )


class _StoreReader(DataSourceReader):
    """A reader without `pushFilters`: with this method, a read fails if push-down is off, which is the default."""

    def __init__(self, reads: Sequence[StoreRead]) -> None:
        self._reads = list(reads)

    def partitions(self) -> list[InputPartition]:
        if not self._reads:
            return []
        index = {id(read): number for number, read in enumerate(self._reads)}
        return [InputPartition((index[id(read)], part)) for read, part in plan_reads(self._reads)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yields the batches of a partition. Without messages, Spark passes None or a partition with the value None."""
        if partition is not None and partition.value is not None:
            number, part = partition.value
            yield from read_partition(self._reads[number], part)


class _FilteringStoreReader(_StoreReader):
    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802  # Spark's name
        """Applies the filters that a scan can apply exactly. Returns the other filters."""
        # PySpark 4.0 lacks the filter classes, so import only here.
        from rmqfast.spark.filters import narrowed_stores

        self._reads, rest = narrowed_stores(self._reads, filters)
        return iter(rest)
