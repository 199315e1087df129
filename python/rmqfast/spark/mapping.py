"""Applies a Python function to Arrow batches, in the same worker that reads them.

Source: `DataFrame.mapInArrow` of PySpark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Unpack

from rmqfast.spark.partitions import MapArguments, StorePart, plan_reads
from rmqfast.spark.reader import cores, store_reads, task_numbers
from rmqfast.spark.task import read_numbered, read_part
from rmqfast.store.message_stores import StorePaths

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from rmqfast.store.decode import Schema

    Function = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_store(
    spark: SparkSession,
    path: StorePaths,
    topic: str | None,
    function: Function,
    schema: StructType | str,
    *,
    value_schema: Schema | None = None,
    **arguments: Unpack[MapArguments],
) -> DataFrame:
    """Applies a function to a store's Arrow batches, in the worker that reads them. Spark only gets the results.

    Args:
        spark: The session.
        path: The store's directory, or those of several brokers, as for `read_store`.
        topic: Only this topic; None for every record of the commit log.
        function: Maps the batches of a partition to batches of `schema`, as for `DataFrame.mapInArrow`.
        schema: Schema of the function's results.
        value_schema: Schema of the bodies with `decode`, as the argument `schema` of `read_store`.
        arguments: Arguments of `read_store` except the engine; name the columns that the function needs.

    Raises:
        UnknownTopicError: The store has no such topic.
        ArgumentError: A value is out of range.

    Example:
        >>> def sizes(batches):
        ...     import pyarrow as pa
        ...     import pyarrow.compute as pc
        ...     for batch in batches:
        ...         total = pc.sum(pc.binary_length(batch.column("body"))).as_py()
        ...         yield pa.RecordBatch.from_pydict({"bytes": pa.array([total], pa.int64())})
        >>> spark, path = getfixture("spark"), getfixture("golden_store")("basic-4.9.4")
        >>> map_store(spark, path, "fx_q1", sizes, "bytes bigint", columns=["body"]).groupBy().sum().first()[0]
        449908
    """
    # Never columnar: rows made in the JVM would have to cross back to Python.
    parts = plan_reads(store_reads(path, topic, schema=value_schema, **arguments), cores(spark))
    mapped: DataFrame = task_numbers(spark, len(parts)).mapInArrow(_over(function, parts), schema)
    return mapped


def _over(function: Function, parts: list[StorePart]) -> Function:
    return lambda numbers: function(read_numbered(read_part, parts, numbers))
