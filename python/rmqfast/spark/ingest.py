"""Writes messages of a store as Parquet files, partitioned by day and topic.

Source: `Observation`, `StatusTracker` and the `noop` format of Spark.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Unpack

from pyspark.accumulators import Accumulator, AccumulatorParam

from rmqfast.arguments import suggests_names
from rmqfast.errors import ArgumentError, CorruptError, DecodeError, StoreError
from rmqfast.message import Damage
from rmqfast.spark.columnar import plain_error
from rmqfast.spark.partitions import StoreRead
from rmqfast.spark.reader import EngineArguments, read_store, store_reads
from rmqfast.store.decode import VALUE
from rmqfast.store.message_stores import StorePaths
from rmqfast.store.report import Ingested

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_MOST_KEPT = 10_000  # as of one scan


class _Places(AccumulatorParam[frozenset[Damage]]):
    """A set of damaged places that tasks add to. It is a set, because two tasks may report the same place."""

    def zero(self, _: frozenset[Damage]) -> frozenset[Damage]:
        return frozenset()

    def addInPlace(self, value1: frozenset[Damage], value2: frozenset[Damage]) -> frozenset[Damage]:  # noqa: N802
        # The driver holds all places in memory, and a store may be damaged everywhere.
        return value1 if len(value1) >= _MOST_KEPT else value1 | value2


def damage_accumulator(spark: SparkSession) -> Accumulator[frozenset[Damage]]:
    """Creates an accumulator for the argument `damage` of `read_store`.

    Args:
        spark: The session; Spark Connect has no accumulators.

    Returns:
        An accumulator of the damaged places, complete after an action that read to the end; at most about 10,000.

    Example:
        >>> from rmqfast.spark import read_store
        >>> spark = getfixture("spark")
        >>> damage = damage_accumulator(spark)
        >>> path = getfixture("golden_store")("damaged-4.9.4")
        >>> read_store(spark, path, None, columns=["tags"], on_damage="warn", damage=damage).count()
        1645
        >>> [(place.offset, place.length) for place in damage.value]
        [(1508364, 24117)]
    """
    return spark.sparkContext.accumulator(frozenset(), _Places())


Progress = Callable[[int, int], None]
"""Called now and then with the tasks that are done, and all tasks that are known."""

POLL_SECONDS = 0.2
#: Bytes of the log per task, at least, and tasks per core, at most: enough tasks to use every core and show progress.
TASK_BYTES = 16 << 20
TASKS_PER_CORE = 4
DAY_MS = 86_400_000


@suggests_names
def ingest(
    spark: SparkSession,
    path: StorePaths,
    topics: Sequence[str] | None,
    out: str | os.PathLike[str],
    *,
    mode: Literal["error", "append", "overwrite"] = "error",
    progress: Progress | None = None,
    **arguments: Unpack[EngineArguments],
) -> Ingested:
    """Writes messages to Parquet as `out/day=2026-11-21/topic=orders/`. The day is the UTC day of `store_timestamp`.

    `out` is a path or URL that Spark can write to, `mode` Spark's save mode if it exists. `topics` None means all.
    `progress` is called from another thread. The result is counted while writing, without a second job. With `decode`
    the files have the column `value`, too, and `Ingested.bad_bodies` counts the bodies that could not be decoded.

    Raises:
        UnknownTopicError: The store has no such topic.
        ArgumentError: Spark cannot write to `out`, since it exists.
        CorruptError: There is damage, unless `on_damage` is "warn". Spark removes the files written so far.
        DecodeError: A body cannot be decoded, and `on_error` is "fail".
    """
    from pyspark.sql import functions as f

    if not os.fspath(out):
        raise ArgumentError("out: expected a path or a URL (. is the current directory), got ''")
    damage = arguments["damage"] = _damage(spark, arguments.get("on_damage", "fail"))
    if "min_partitions" not in arguments:
        reads = store_reads(path, None, commit_log_dirs=arguments.get("commit_log_dirs", ()))
        arguments["min_partitions"] = _tasks(spark, reads)
    # Whole days by arithmetic, since a cast to date would use the session's time zone.
    day = f.date_from_unix_date(f.floor(f.unix_millis("store_timestamp") / f.lit(DAY_MS)).cast("int"))
    # One read per topic, since a scan of one topic can follow its queues and skip the rest of the log.
    frame = _union([read_store(spark, path, topic, **arguments) for topic in topics or (None,)])

    def write(counted: DataFrame) -> None:
        counted.withColumn("day", day).write.mode(mode).partitionBy("day", "topic").parquet(os.fspath(out))

    done = _run_counted(spark, frame, write, progress)
    return (
        done if damage is None else replace(done, damage=tuple(sorted(damage.value, key=lambda p: (p.file, p.offset))))
    )


def read_all(
    spark: SparkSession,
    path: StorePaths,
    topic: str | None,
    *,
    progress: Progress | None = None,
    **arguments: Unpack[EngineArguments],
) -> Ingested:
    """Reads messages with Spark and drops them, to measure the speed. Returns their counts.

    `store_size` must be among the columns.
    """

    def drop(counted: DataFrame) -> None:
        counted.write.format("noop").mode("overwrite").save()

    return _run_counted(spark, read_store(spark, path, topic, **arguments), drop, progress)


def _tasks(spark: SparkSession, reads: Sequence[StoreRead]) -> int:
    size = 0
    for read in reads:
        with read.open() as store:
            info = store.info()
        size += info.max_offset - info.min_offset
    at_most = TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    return max(1, min(size // TASK_BYTES, at_most))


def _damage(spark: SparkSession, on_damage: str) -> Accumulator[frozenset[Damage]] | None:
    """Returns an accumulator for damage. None if damage ends the job."""
    # With "fail", the error that ends the job lists the places itself.
    return damage_accumulator(spark) if on_damage == "warn" else None


def _run_counted(
    spark: SparkSession, frame: DataFrame, act: Callable[[DataFrame], None], progress: Progress | None
) -> Ingested:
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    seen = Observation("rmqfast")
    size = f.sum(f.col("store_size").cast("long"))
    counts = [f.count(f.lit(1)).alias("rows"), f.coalesce(size, f.lit(0)).alias("bytes")]
    if {VALUE, "body"} <= set(frame.columns):
        # A body that is null itself is damage.
        is_bad = f.col(VALUE).isNull() & f.col("body").isNotNull()
        counts.append(f.coalesce(f.sum(is_bad.cast("long")), f.lit(0)).alias("bad_bodies"))
    # Counted on the way to the sink, since a second action would read the store again.
    counted = frame.observe(seen, *counts)
    started = time.monotonic()
    with _watch_progress(spark, progress), _plain_errors():
        act(counted)
    return Ingested(**seen.get, seconds=time.monotonic() - started)


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Replaces an error of Spark by its cause, without the tracebacks of Python and Java."""
    from pyspark.errors import AnalysisException, PySparkException

    try:
        yield
    except AnalysisException as error:
        # The first line says what is wrong; the query plan after it is of no use here.
        raise ArgumentError(str(error).partition("\n")[0]) from error
    except Exception as error:  # py4j and PySpark wrap the JVM's exceptions in classes of their own
        plain = plain_error(error)
        if plain is not None:
            raise plain from error
        if not isinstance(error, PySparkException):
            raise
        # A worker's traceback arrives as a string; its last line names the class.
        last_line = re.search(r"^rmqfast\.errors\.(\w+): (.*)", str(error), re.MULTILINE)
        if last_line is None:
            raise
        kind = {"CorruptError": CorruptError, "DecodeError": DecodeError}.get(last_line[1], StoreError)
        raise kind(last_line[2]) from error


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    united = frames[0]
    for frame in frames[1:]:
        united = united.unionByName(frame)
    return united


@contextmanager
def _watch_progress(spark: SparkSession, progress: Progress | None) -> Iterator[None]:
    if progress is None:
        yield
        return
    over = threading.Event()
    # A daemon thread, since a progress callback that hangs must not keep the program alive.
    watcher = threading.Thread(target=_watch, args=(spark, progress, over), name="rmqfast-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _watch(spark: SparkSession, progress: Progress, over: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    stages: dict[int, tuple[int, int]] = {}
    is_over = False
    while not is_over:
        # One more round after the end, so that the last call reports all tasks as done.
        is_over = over.wait(POLL_SECONDS)
        # A stage that ended is no longer active, but its tasks still count.
        for stage in {*stages, *tracker.getActiveStageIds()}:
            info = tracker.getStageInfo(stage)
            if info is not None:
                stages[stage] = (info.numCompletedTasks, info.numTasks)
        done, total = (sum(numbers) for numbers in zip(*stages.values(), strict=True)) if stages else (0, 0)
        progress(done, total)
