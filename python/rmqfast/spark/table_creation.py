"""Creates Delta and Iceberg tables with the columns of messages.

Source: `DataFrameWriterV2` of Spark; "Generated columns" of Delta Lake; "Partition transforms" of Iceberg.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rmqfast.arguments import suggests_names
from rmqfast.errors import ArgumentError
from rmqfast.spark.schema import row_schema
from rmqfast.spark.table_formats import FORMATS, TableFormat, support_of
from rmqfast.tables.partitioning import DAY, Partitioning

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

#: The UTC day of a message. A cast to date would use the time zone of the session; Delta allows few functions here.
_UTC_DAY = (
    "date_add(CAST('1970-01-01' AS DATE), "
    "CAST(floor(CAST(CAST(store_timestamp AS BIGINT) AS DOUBLE) / 86400.0) AS INT))"
)
_EXISTS = re.compile(r"\[\w*(ALREADY_EXISTS|PATH_EXISTS)\w*\]")
#: Rows are written as they come. Iceberg would shuffle all bodies by partition first.
_ICEBERG_PROPERTIES = {"write.distribution-mode": "none", "write.spark.fanout.enabled": "true"}


@suggests_names
def create_table(
    spark: SparkSession,
    name: str,
    rows: DataFrame | None = None,
    *,
    format: TableFormat | None = None,  # noqa: A002 - Spark's own name
    partition: Sequence[str] = (DAY, "topic"),
    properties: Mapping[str, str] | None = None,
    exist_ok: bool = False,
) -> None:
    """Creates a table for messages, without rows.

    Spark streams, batches and `rmqfast ingest` can write to it. The partition `day` is the UTC day of
    `store_timestamp`: a hidden partition in Iceberg; in Delta a generated column, which writers leave out.

    Args:
        spark: A session with the format's package; `configure(builder, tables=["delta"])` adds it.
        name: Name of the table, such as `ice.db.orders`, or a Delta table's path as delta.`/lake/orders`.
        rows: A DataFrame whose columns the table gets, such as the stream that will be written, with its decoded
            bodies. By default the table has all columns of a scan.
        format: `delta` or `iceberg`. By default the format of the name's catalog.
        partition: Some of `day`, `topic`, `broker_name`, `queue_id` and `tags`.
        properties: Properties of the table, beside ours or in place of them: in Iceberg, tasks write rows as they come
            (`write.distribution-mode=none`, `write.spark.fanout.enabled=true`).
        exist_ok: Whether a table of this name may exist. It stays as it is.

    Raises:
        ArgumentError: The table exists, its columns lack one of the partitions, or the format cannot be told.

    Example:
        ```python
        orders = spark.readStream.format("rocketmq-columnar").option("storePath", "store").load()
        create_table(spark, "ice.db.orders", orders)
        orders.writeStream.option("checkpointLocation", "checkpoints/orders").toTable("ice.db.orders")
        ```
    """
    chosen = _format_of(spark, name) if format is None else format
    support = support_of(chosen)
    schema = row_schema() if rows is None else rows.schema
    columns = Partitioning.of_names(partition).columns
    missing = sorted({column.source for column in columns} - set(schema.names))
    if missing:
        raise ArgumentError(f"{name}: expected columns for its partitions, got none named {', '.join(missing)}")
    has_day = any(column.name == DAY for column in columns)
    if chosen == "delta" and has_day:
        schema = _with_generated_day(schema)
    writer = _empty_frame(spark, schema).writeTo(name).using(chosen)
    if columns:
        first, *others = [_partition_column(chosen, column.name) for column in columns]
        writer = writer.partitionedBy(first, *others)
    own = _ICEBERG_PROPERTIES if chosen == "iceberg" else {}
    for key, value in {**own, **(properties or {})}.items():
        writer = writer.tableProperty(key, value)
    try:
        writer.create()
    except Exception as error:  # its class differs between Spark versions and Spark Connect
        text = str(error)
        if _EXISTS.search(text) is not None:
            if exist_ok:
                return
            raise ArgumentError(f"{name}: expected no table of this name; exist_ok=True leaves it as it is") from error
        if "DATA_SOURCE_NOT_FOUND" not in text:
            raise
        unknown = f'{name}: this session has no {support.title}; rmqfast.spark.configure(builder, tables=["{chosen}"])'
        raise ArgumentError(f"{unknown} adds it before a session starts") from error


def _format_of(spark: SparkSession, name: str) -> TableFormat:
    """Returns the format of the tables in the catalog of a name."""
    first = name.partition(".")[0].strip("`")
    own = spark.conf.get(f"spark.sql.catalog.{first}", None)
    if first in FORMATS and own is None:
        # a path
        return first
    catalog = own or spark.conf.get(f"spark.sql.catalog.{spark.catalog.currentCatalog()}", None) or ""
    for format_ in FORMATS:
        # Iceberg's SparkSessionCatalog has tables of all formats
        if format_ in catalog and "SessionCatalog" not in catalog:
            return format_
    raise ArgumentError(f"format: expected {' or '.join(FORMATS)} for {name}, as its catalog has tables of any format")


def _empty_frame(spark: SparkSession, schema: StructType) -> DataFrame:
    """Returns a DataFrame without rows. Unlike `createDataFrame`, it needs no Python where tasks run."""
    from pyspark.sql import functions as f

    nothing = f.lit(None)
    columns = [nothing.cast(field.dataType).alias(field.name, metadata=field.metadata) for field in schema.fields]
    return spark.range(0).select(*columns)


def _with_generated_day(schema: StructType) -> StructType:
    from pyspark.sql.types import DateType, StructField, StructType

    kept = [field for field in schema.fields if field.name != DAY]
    return StructType([*kept, StructField(DAY, DateType(), metadata={"delta.generationExpression": _UTC_DAY})])


def _partition_column(format_: str, name: str) -> Column:
    from pyspark.sql import functions as f

    if name == DAY and format_ == "iceberg":
        # `days` moved in PySpark 4.0
        transforms: Any = getattr(f, "partitioning", f)
        days: Column = transforms.days("store_timestamp")
        return days
    return f.col(name)
