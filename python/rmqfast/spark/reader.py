"""A store as a DataFrame: by the columnar source if it can be used, otherwise in Python workers.

Source: `MessageStore.scan`, whose arguments these are; `SparkContext.defaultParallelism`, `RangeExec` of Spark.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Literal, Unpack

from rmqfast._native import check_not_expired
from rmqfast.errors import ArgumentError
from rmqfast.spark.columnar import columnar_frame
from rmqfast.spark.partitions import StoreRead, StoreReadArguments, plan_partitions
from rmqfast.spark.schema import request_schema
from rmqfast.spark.task import read_numbered, read_partition

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Engine = Literal["auto", "columnar", "arrow", "pandas"]
_ENGINES = ("auto", "columnar", "arrow", "pandas")


class EngineArguments(StoreReadArguments, total=False):
    """Keyword arguments of functions that call `read_store`."""

    engine: Engine


def read_store(
    spark: SparkSession,
    path: str | os.PathLike[str],
    topic: str | None,
    *,
    engine: Engine = "auto",
    **arguments: Unpack[StoreReadArguments],
) -> DataFrame:
    """Reads messages of a store directory as a DataFrame. This call fixes the range of the log.

    Args:
        spark: The session.
        path: The store's directory, at the same place on the driver and on every executor.
        topic: Only this topic; None for every record of the commit log.
        engine: "columnar" (inside the JVM), "arrow" (mapInArrow), "pandas" (mapInPandas, half as fast as that).
                "auto" is columnar if `configure` added its jar, otherwise arrow; the log names the engine.
        arguments: Messages, columns and partitions to read, see `rmqfast.spark.StoreReadArguments`. Only "columnar"
            omits by itself the columns, and the fields of decoded bodies, that a query does not use.

    Raises:
        UnknownTopicError: The store has no such topic.
        UnknownColumnError: The row has no such column.
        ExpressionError: `tags` or `sql` does not parse.
        ArgumentError: A value is out of range.
        CorruptError: An offset in `start_offset` has expired, unless `on_damage` is "warn".

    Example:
        >>> spark = getfixture("spark")
        >>> path = getfixture("golden_store")("basic-4.9.4")
        >>> read_store(spark, path, "fx_q1", tags="TagA", columns=["tags"]).count()
        105
    """
    check_engine(engine)
    read = store_read(path, topic, **arguments)
    if engine in {"auto", "columnar"}:
        frame = columnar_frame(spark, read, "auto" if engine == "auto" else "columnar")
        if frame is not None:
            return frame
    partitions = plan_partitions(read, cores(spark))
    schema = request_schema(read.request)
    return task_frame(
        spark, engine, schema, partial(read_numbered, partial(read_partition, read), partitions), len(partitions)
    )


def check_engine(engine: str) -> None:
    if engine not in _ENGINES:
        raise ArgumentError(f"engine: expected {', '.join(map(repr, _ENGINES))}, got {engine!r}")


def store_read(path: str | os.PathLike[str], topic: str | None, **arguments: Unpack[StoreReadArguments]) -> StoreRead:
    """Checks the arguments of `read_store` and returns them as one object.

    Raises `CorruptError` for an expired offset in `start_offset`, unless `on_damage` is "warn".
    """
    read = StoreRead.of(path, topic, arguments)
    _check_not_expired(read)
    return read


def cores(spark: SparkSession) -> int | None:
    """Returns the number of cores that Spark reports. None if it does not report any."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # noqa: BLE001  # Spark Connect cannot tell, and each version raises another error
        return None


def task_numbers(spark: SparkSession, count: int) -> DataFrame:
    """Returns a DataFrame with one number per task, from 0: the index of its piece. The function has the pieces."""
    # Spark refuses 0 slices; an empty range has one task without a number. A local table would instead be cut by the
    # default parallelism.
    numbers: DataFrame = spark.range(0, count, 1, max(count, 1))
    return numbers


def task_frame(
    spark: SparkSession,
    engine: Engine,
    schema: StructType,
    read: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    count: int,
) -> DataFrame:
    """Returns the rows of `count` Python tasks. `read` gets the number of a task and yields the task's batches."""

    def read_in_pandas(numbers: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        import pyarrow as pa

        from rmqfast.spark.frames import arrow_frame

        return map(arrow_frame, read(map(pa.RecordBatch.from_pandas, numbers)))

    numbers = task_numbers(spark, count)
    rows: DataFrame = (
        numbers.mapInPandas(read_in_pandas, schema) if engine == "pandas" else numbers.mapInArrow(read, schema)
    )
    return rows


def _check_not_expired(read: StoreRead) -> None:
    start, topic = read.request.start_offset, read.request.topic
    if topic is None or not isinstance(start, Mapping) or read.on_damage == "warn":
        return
    with read.open() as store:
        check_not_expired("start_offset", start, store.topics().get(topic, {}))
