"""Jobs of the columnar source on a master that is given, each a driver of its own; the last line of output is JSON.

usage: python -m tests.spark.cluster_jobs MASTER JOB STORE ...
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from rmqfast.spark import configure, read_store
from tests.effort import effort
from tests.waiting import until

from .cluster import ALONE, Settings, executors, kill_executor

Answer = dict[str, Any]
TASKS = effort("RMQFAST_TASKS", 1_250, 10_000)
COPIES = -(-TASKS // 625)  # so many partitions the large store has, at least
TOTALS = "count(1) AS rows", "coalesce(sum(length(body)), 0) AS bytes"
SLOW = "reflect('java.lang.Thread', 'sleep', 2L) = 'null'"  # two milliseconds a row


def rows(spark: SparkSession, *paths: str) -> Answer:
    """Every row of each store: where it is and what it says."""
    found = {}
    for path in paths:
        frame = read_store(spark, path, None, engine="columnar")
        collected = frame.selectExpr("physical_offset", "msg_id", "tags", "hex(body) AS body").collect()
        found[path] = {"rows": sorted(map(list, collected)), "executors": len(executors(application(spark)))}
    return found


def killed(spark: SparkSession, path: str) -> Answer:
    """An executor is killed while the job runs."""
    job = Running(spark, slow(spark, path))
    job.wait_for_tasks(2)
    victim = kill_executor(application(spark))
    return {**job.answer(), "killed": victim not in executors(application(spark))}


def cancelled(spark: SparkSession, path: str) -> Answer:
    """A job is cancelled while it runs, and the next one runs as ever."""
    job = Running(spark, slow(spark, path))
    job.wait_for_tasks(2)
    spark.sparkContext.cancelAllJobs()
    error = job.error()
    return {**totals(read_store(spark, path, None, engine="columnar")), "cancelled": "cancelled" in str(error)}


def speculative(spark: SparkSession, path: str) -> Answer:
    """Spark runs slow tasks twice; `configured` asks it to."""
    return Running(spark, slow(spark, path)).answer()


def limited(spark: SparkSession, path: str) -> Answer:
    """Tasks that end before their partition does."""
    frame = read_store(spark, path, None, engine="columnar", partition_bytes=1 << 18)
    return {"rows": len(frame.limit(10).collect()), "taken": len(frame.take(7))}


def many(spark: SparkSession, path: str) -> Answer:
    """A store read several times in one job, each time in hundreds of tasks."""
    once = read_store(spark, path, None, engine="columnar", partition_bytes=1 << 16)
    frame = reduce(DataFrame.unionAll, [once] * COPIES)
    return {**totals(frame), "partitions": frame.rdd.getNumPartitions()}


def memory(spark: SparkSession, path: str) -> Answer:
    """Resident bytes of a JVM whose heap is all there from the start: after some tasks, and after thousands more."""
    frame = read_store(spark, path, None, engine="columnar", min_partitions=2_000, partition_bytes=1 << 14)
    tasks = frame.rdd.getNumPartitions()
    found = totals(frame)
    totals(frame)
    before = resident(spark)
    for _ in range(-(-TASKS // tasks)):
        assert totals(frame) == found
    return {**found, "tasks": tasks, "before": before, "after": resident(spark)}


class Running:
    """A count of rows and bytes that runs in a thread of its own."""

    def __init__(self, spark: SparkSession, frame: DataFrame) -> None:
        self._spark = spark
        self._found: Answer = {}
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(frame,))
        self._thread.start()

    def wait_for_tasks(self, done: int) -> None:
        """Waits until so many tasks are done."""
        status = self._spark.sparkContext.statusTracker()

        def are_done() -> bool:
            stages = [status.getStageInfo(stage) for stage in status.getActiveStageIds()]
            return any(stage is not None and stage.numCompletedTasks >= done for stage in stages)

        until(are_done, lambda: f"{done} tasks to end: {self._error}", patience=300)

    def answer(self) -> Answer:
        """What it found."""
        error = self.error()
        if error is not None:
            raise error
        return self._found

    def error(self) -> Exception | None:
        """What ended it early."""
        self._thread.join()
        return self._error

    def _run(self, frame: DataFrame) -> None:
        try:
            self._found = totals(frame)
        except Exception as error:  # noqa: BLE001  # it is raised where it is asked for
            self._error = error


def slow(spark: SparkSession, path: str) -> DataFrame:
    return read_store(spark, path, None, engine="columnar", partition_bytes=1 << 20).where(SLOW)


def totals(frame: DataFrame) -> Answer:
    found = frame.selectExpr(*TOTALS).first()
    assert found is not None
    return found.asDict()


def application(spark: SparkSession) -> str:
    return str(spark.sparkContext.applicationId)


def resident(spark: SparkSession) -> int:
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no other way to its JVM
    jvm.java.lang.System.gc()
    pages = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


JOBS: dict[str, Callable[..., Answer]] = {
    job.__name__: job for job in (rows, killed, cancelled, speculative, limited, many, memory)
}


def session(master: str, job: str) -> SparkSession:
    """A driver with executors of one core; where it reads by itself, all of its heap is there from the start."""
    settings: Settings = {
        **ALONE,
        "spark.driver.memory": "768m",
        "spark.driver.extraJavaOptions": "-Xms768m -XX:+AlwaysPreTouch" if job == "memory" else "",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.speculation": str(job == "speculative").lower(),
        "spark.speculation.quantile": "0.1",
        "spark.speculation.multiplier": "1.01",
        "spark.speculation.interval": "20ms",
        "spark.speculation.minTaskRuntime": "1ms",
    }
    builder = configure(SparkSession.builder.master(master).appName(f"rmqfast {job}"))
    spark = builder.config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def main() -> None:
    """Runs one job and prints what it found."""
    master, job, *paths = sys.argv[1:]
    spark = session(master, job)
    answer = JOBS[job](spark, *paths)
    spark.stop()
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
