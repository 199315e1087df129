"""A store as a DataFrame: by the columnar source if it can be used, otherwise in Python workers.

Source: `MessageStore.scan`, whose arguments these are; `SparkContext.defaultParallelism`, `RangeExec` of Spark.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack

from rmqfast._native import check_not_expired, find_broker_stores
from rmqfast.errors import ArgumentError
from rmqfast.paths import local_path
from rmqfast.spark.columnar import columnar_frame
from rmqfast.spark.partitions import StoreRead, StoreReadArguments, plan_reads, with_topic
from rmqfast.spark.schema import request_schema
from rmqfast.spark.task import read_numbered, read_part
from rmqfast.store.message_stores import StorePaths, offsets_by_broker, paths_by_broker

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_LOG = logging.getLogger("rmqfast.spark")

Engine = Literal["auto", "columnar", "arrow", "pandas"]
_ENGINES = ("auto", "columnar", "arrow", "pandas")


class EngineArguments(StoreReadArguments, total=False):
    """Keyword arguments of functions that call `read_store`."""

    engine: Engine


def read_store(
    spark: SparkSession,
    path: StorePaths,
    topic: str | None,
    *,
    engine: Engine = "auto",
    **arguments: Unpack[StoreReadArguments],
) -> DataFrame:
    """Reads messages of a store directory, or of several, as a DataFrame. This call fixes the range of the logs.

    Args:
        spark: The session.
        path: The store's directory, at the same place on the driver and on every executor. For the stores of several
            brokers what `open_stores` takes: a directory that has them, a pattern, or paths by broker.
        topic: Only this topic, which not every broker needs to have; None for every record of the commit log.
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
    reads = store_reads(path, topic, **arguments)
    if engine in {"auto", "columnar"}:
        frame = columnar_frame(spark, reads, "auto" if engine == "auto" else "columnar")
        if frame is not None:
            return frame
    if any(read.store_hosts for read in reads):
        _LOG.warning("store_hosts: expected engine columnar, got %s, which cannot ask Spark for hosts", engine)
    parts = plan_reads(reads, cores(spark))
    schema = request_schema(reads[0].request)
    return task_frame(spark, engine, schema, partial(read_numbered, read_part, parts), len(parts))


def check_engine(engine: str) -> None:
    if engine not in _ENGINES:
        raise ArgumentError(f"engine: expected {', '.join(map(repr, _ENGINES))}, got {engine!r}")


def store_reads(path: StorePaths, topic: str | None, **arguments: Unpack[StoreReadArguments]) -> list[StoreRead]:
    """Checks the arguments of `read_store` and returns the read of each store that has the topic.

    Raises `CorruptError` for an expired offset in `start_offset`, unless `on_damage` is "warn".
    """
    found = None
    if not isinstance(path, Mapping):
        found = find_broker_stores(local_path(path, "path"))
        if found is None:
            return [store_read(path, topic, **arguments)]
    stores = paths_by_broker(path) if found is None else found
    if arguments.pop("broker_name", None) is not None:
        raise ArgumentError("broker_name: expected none with several stores, which have names")
    values: dict[str, Any] = dict(arguments)
    logs = values.pop("commit_log_dirs", None) or {}
    if not isinstance(logs, Mapping):
        raise ArgumentError(f"commit_log_dirs: expected directories by broker with several stores, got {logs!r}")
    hosts = values.pop("store_hosts", ())
    if isinstance(hosts, Mapping):
        for unknown in hosts.keys() - stores.keys():
            raise ArgumentError(f"store_hosts: expected names of {', '.join(stores)}, got {unknown!r}")
    bounds = {name: offsets_by_broker(name, values, stores) for name in ("start_offset", "end_offset")}
    reads = []
    for broker, store in stores.items():
        own: Any = {name: offsets[broker] for name, offsets in bounds.items() if broker in offsets}
        own |= {"broker_name": broker, "commit_log_dirs": logs.get(broker, ())}
        own["store_hosts"] = hosts.get(broker, ()) if isinstance(hosts, Mapping) else hosts
        reads.append(StoreRead.of(store, topic, values | own))
    reads = with_topic(reads)
    for read in reads:
        _check_not_expired(read)
    return reads


def store_read(path: str | os.PathLike[str], topic: str | None, **arguments: Unpack[StoreReadArguments]) -> StoreRead:
    """Returns the read of one store. See `store_reads`."""
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
