"""A store as a DataFrame: by the columnar source where it loads, else by `mapInArrow` or `mapInPandas`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from rmqfast._native import check_not_expired
from rmqfast.errors import ArgumentError
from rmqfast.spark.columnar import columnar_frame
from rmqfast.spark.partitions import Partition, StoreRead, plan_partitions
from rmqfast.spark.schema import row_schema
from rmqfast.spark.task import read_numbered, read_partition
from rmqfast.store import ScanRequest, time_range
from rmqfast.store.request import MAX_BODY_BYTES, Time

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.accumulators import Accumulator
    from pyspark.sql import DataFrame, SparkSession

    from rmqfast.message import Damage

__all__ = ["Engine", "cores", "read_store", "store_read", "task_numbers"]

Engine = Literal["auto", "columnar", "arrow", "pandas"]
_ENGINES = ("auto", "columnar", "arrow", "pandas")


def read_store(
    spark: SparkSession,
    path: str | os.PathLike[str],
    topic: str | None,
    *,
    tags: str = "*",
    sql: str | None = None,
    keys: Sequence[str] | None = None,
    queue_ids: Sequence[int] | None = None,
    start_offset: int | Mapping[int, int] | None = None,
    end_offset: int | Mapping[int, int] | None = None,
    start_time: Time | None = None,
    end_time: Time | None = None,
    columns: Sequence[str] | None = None,
    engine: Engine = "auto",
    min_partitions: int | None = None,
    partition_bytes: int | None = None,
    verify_crc: bool = False,
    on_damage: Literal["fail", "warn"] = "fail",
    damage: Accumulator[frozenset[Damage]] | None = None,
    broker_name: str | None = None,
    commit_log_dirs: Sequence[str | os.PathLike[str]] = (),
    io: Literal["pread", "mmap"] = "pread",
    max_body_bytes: int = MAX_BODY_BYTES,
) -> DataFrame:
    """Reads messages of a store directory as a DataFrame; what is read is fixed now, by this call.

    Args:
        spark: The session.
        path: The store's directory, at the same place on the driver and on every executor.
        topic: Only this topic; None is every record of the commit log.
        tags: Tag expression, as "A || B"; "*" is all.
        sql: SQL92 condition over the properties.
        keys: Only messages that have one of these keys, or one as UNIQ_KEY.
        queue_ids: Only these queues.
        start_offset: Queue offsets from here on: one number, or one by queue. One by queue must not have expired.
        end_offset: Queue offsets before this.
        start_time: Store timestamps from here on: milliseconds, ISO 8601, datetime.
        end_time: Store timestamps before this.
        columns: Columns of the row, in this order. Only "columnar" leaves out by itself what a query does not use.
        engine: "columnar" (inside the JVM), "arrow" (mapInArrow), "pandas" (mapInPandas, half as fast as that).
            "auto" is columnar where `configure` added its jar, else arrow; the log says which.
        min_partitions: At least so many partitions, where the log can be cut so often.
        partition_bytes: Bytes of the log that a partition reads, about. None is 256 MiB, and up to 1 GiB where Python
            workers would have more than four tasks a core.
        verify_crc: Check every body.
        on_damage: "fail" ends the job when bytes of the log cannot be used, "warn" logs them to `rmqfast.spark`.
        damage: An accumulator of `rmqfast.spark.damage` that takes the damaged places, which then are not logged.
        broker_name: What the column `broker_name` shall say.
        commit_log_dirs: Directories of the commit log, where it is not below `path`.
        io: As in `open_store`.
        max_body_bytes: Bytes of a decompressed body; a larger one is null, and damage.

    Raises:
        UnknownTopicError: The store has no such topic.
        UnknownColumnError: The row has no such column.
        ExpressionError: `tags` or `sql` does not parse.
        ArgumentError: A value out of range.
        CorruptError: An offset in `start_offset` by queue has expired, unless `on_damage` is "warn".

    Example:
        >>> spark = getfixture("spark")
        >>> path = getfixture("golden_store")("basic-4.9.4")
        >>> read_store(spark, path, "fx_q1", tags="TagA", columns=["tags"]).count()
        105

    Source: `MessageStore.scan`, whose arguments these are.
    """
    if engine not in _ENGINES:
        raise ArgumentError(f"engine: expected {', '.join(map(repr, _ENGINES))}, got {engine!r}")
    read = store_read(
        path,
        topic,
        tags=tags,
        sql=sql,
        keys=keys,
        queue_ids=queue_ids,
        start_offset=start_offset,
        end_offset=end_offset,
        start_time=start_time,
        end_time=end_time,
        columns=columns,
        min_partitions=min_partitions,
        partition_bytes=partition_bytes,
        verify_crc=verify_crc,
        on_damage=on_damage,
        damage=damage,
        broker_name=broker_name,
        commit_log_dirs=commit_log_dirs,
        io=io,
        max_body_bytes=max_body_bytes,
    )
    if engine in {"auto", "columnar"}:
        frame = columnar_frame(spark, read, "auto" if engine == "auto" else "columnar")
        if frame is not None:
            return frame
    partitions = plan_partitions(read, cores(spark))
    numbers, schema = task_numbers(spark, partitions), row_schema(read.request.columns)
    if engine == "pandas":
        made: DataFrame = numbers.mapInPandas(_in_pandas(read, partitions), schema)
    else:
        made = numbers.mapInArrow(partial(read_numbered, read, partitions), schema)
    return made


def store_read(
    path: str | os.PathLike[str],
    topic: str | None,
    *,
    tags: str = "*",
    sql: str | None = None,
    keys: Sequence[str] | None = None,
    queue_ids: Sequence[int] | None = None,
    start_offset: int | Mapping[int, int] | None = None,
    end_offset: int | Mapping[int, int] | None = None,
    start_time: Time | None = None,
    end_time: Time | None = None,
    columns: Sequence[str] | None = None,
    min_partitions: int | None = None,
    partition_bytes: int | None = None,
    verify_crc: bool = False,
    on_damage: Literal["fail", "warn"] = "fail",
    damage: Accumulator[frozenset[Damage]] | None = None,
    broker_name: str | None = None,
    commit_log_dirs: Sequence[str | os.PathLike[str]] = (),
    io: Literal["pread", "mmap"] = "pread",
    max_body_bytes: int = MAX_BODY_BYTES,
) -> StoreRead:
    """The arguments of `read_store` as a value, checked.

    Raises:
        ArgumentError: A value out of range.
        CorruptError: An offset in `start_offset` by queue has expired, unless `on_damage` is "warn".

    Example:
        >>> store_read(getfixture("golden_store")("basic-4.9.4"), "fx_q1", columns=["tags"]).request.columns
        ('tags',)

    Source: as `read_store`.
    """
    first_time, last_time = time_range(start_time, end_time)
    request = ScanRequest(
        topic=topic,
        queue_ids=queue_ids,
        tags=tags,
        sql=sql,
        keys=keys,
        start_offset=start_offset,
        end_offset=end_offset,
        start_time=first_time,
        end_time=last_time,
        columns=columns,
        microseconds=True,
        broker_name=broker_name,
        verify_crc=verify_crc,
        max_body_bytes=max_body_bytes,
    )
    read = StoreRead(
        path=os.fspath(path),
        request=request,
        commit_log_dirs=tuple(os.fspath(d) for d in commit_log_dirs),
        io=io,
        on_damage=on_damage,
        damage=damage,
        min_partitions=min_partitions,
        partition_bytes=partition_bytes,
    )
    _check_not_expired(read)
    return read


def cores(spark: SparkSession) -> int | None:
    """The cores that Spark knows of; None where it does not tell.

    Source: `SparkContext.defaultParallelism`.
    """
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # noqa: BLE001  # Spark Connect does not tell, each version in a way of its own
        return None


def task_numbers(spark: SparkSession, partitions: Sequence[object]) -> DataFrame:
    """A range of as many numbers as partitions: a task each, without a shuffle; a task finds its own by its number.

    Source: `RangeExec` splits n numbers into n slices of one; a local table is cut by the default parallelism instead.
    """
    numbers: DataFrame = spark.range(0, len(partitions), 1, max(len(partitions), 1))
    return numbers


def _check_not_expired(read: StoreRead) -> None:
    start, topic = read.request.start_offset, read.request.topic
    if topic is None or not isinstance(start, Mapping) or read.on_damage == "warn":
        return
    with read.open() as store:
        check_not_expired("start_offset", start, store.topics().get(topic, {}))


def _in_pandas(
    read: StoreRead, partitions: list[Partition]
) -> Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    def frames(numbers: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        from rmqfast.spark.frames import arrow_frame

        for frame in numbers:
            for number in frame.iloc[:, 0]:
                yield from map(arrow_frame, read_partition(read, partitions[number]))

    return frames
