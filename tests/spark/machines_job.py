"""Jobs on several machines, each a driver of its own; the last line of output is JSON.

usage: python -m tests.spark.machines_job MASTER JOB DIRECTORY [NAME=VALUE ...]
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from rmqfast import Message, open_store
from rmqfast.spark import configure, read_store, read_topic
from tests.spark.cluster import ALONE, Settings, executors, kill_executor
from tests.spark.cluster_jobs import Running, application, slow, totals
from tests.waiting import until

Answer = dict[str, Any]
STORE = "store"
#: Executors come with the tasks, and leave when they have had none for two seconds.
ELASTIC: Settings = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.initialExecutors": "0",
    "spark.dynamicAllocation.maxExecutors": "3",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    "spark.dynamicAllocation.executorIdleTimeout": "2s",
    "spark.dynamicAllocation.shuffleTracking.timeout": "2s",
}


def without_python(spark: SparkSession, directory: Path, name_server: str) -> Answer:
    """Reads, writes and streams where executors have no Python."""
    path = directory / STORE
    frame = read_store(spark, path, None, engine="columnar")
    frame.write.parquet(str(directory / "written"))
    found: Answer = {"read": totals(frame), "written": totals(spark.read.parquet(str(directory / "written")))}
    stream = spark.readStream.format("rocketmq-columnar").option("storePath", str(path))
    writer = stream.option("startingOffsets", "earliest").load().writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(directory / "checkpoint")).trigger(availableNow=True)
    writer.start(str(directory / "streamed")).awaitTermination()
    found["streamed"] = totals(spark.read.parquet(str(directory / "streamed")))
    sink = frame.selectExpr("body", "tags").write.format("rocketmq-columnar").mode("append")
    sink.options(nameServer=name_server, topic="copied").save()
    found["copied"] = totals(read_topic(spark, name_server, "copied", engine="columnar"))
    try:
        read_store(spark, path, None, engine="arrow").count()
    except Exception as error:  # noqa: BLE001 - Spark's, of whatever class
        found["python"] = str(error)
    return found


def loaded(spark: SparkSession, directory: Path) -> Answer:
    """Reads a row, for which an executor loads the library; or what keeps it from that."""
    try:
        rows = read_store(spark, directory / STORE, None, engine="columnar").select("body").take(1)
    except Exception as error:  # noqa: BLE001 - Spark's, of whatever class
        return {"error": str(error)}
    return {"rows": len(rows)}


def elastic(spark: SparkSession, directory: Path) -> Answer:
    """Executors come and go between reads, and one is killed amid a read."""
    path = str(directory / STORE)
    counts = [len(executors(application(spark)))]
    job = Running(spark, slow(spark, path))
    most = Most(spark)
    job.wait_for_tasks(2)
    until(lambda: len(executors(application(spark))) > 1, patience=300)
    kill_executor(application(spark))
    found: Answer = {"first": job.answer()}
    counts.append(most.stop())
    until(lambda: not executors(application(spark)), patience=300)
    found["second"] = totals(read_store(spark, path, None, engine="columnar"))
    found["streamed"] = streamed(spark, directory)
    return {**found, "executors": counts}


def streamed(spark: SparkSession, directory: Path) -> list[int]:
    """Rows of a stream's first batch, and of all; all executors leave before the second."""
    stream = spark.readStream.format("rocketmq-columnar").option("storePath", str(directory / STORE))
    writer = stream.option("startingOffsets", "earliest").load().writeStream.format("parquet")
    query = writer.option("checkpointLocation", str(directory / "checkpoint")).start(str(directory / "streamed"))
    counts = []
    for _ in range(2):
        query.processAllAvailable()
        counts.append(spark.read.parquet(str(directory / "streamed")).count())
        until(lambda: not executors(application(spark)), patience=300)
        with open_store(directory / STORE, mode="a") as store:
            store.append_many([Message("T", b"later")] * 100)
    query.stop()
    return counts


def local(spark: SparkSession, directory: Path, hosts: str) -> Answer:
    """The hosts of the tasks of a read of a store that lies on a host."""
    options = {"storePath": str(directory / STORE), "storeHosts": hosts, "partitionBytes": str(1 << 18)}
    frame = spark.read.format("rocketmq-columnar").options(**options).load()
    return {"read": totals(frame), "partitions": frame.rdd.getNumPartitions()}


class Most:
    """The most executors that an application has at once."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self._most, self._over = spark, 0, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def stop(self) -> int:
        self._over.set()
        self._thread.join()
        return self._most

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            self._most = max(self._most, len(executors(application(self._spark))))


JOBS: dict[str, Callable[..., Answer]] = {job.__name__: job for job in (without_python, loaded, elastic, local)}


def main() -> None:
    """Runs one job and prints what it found."""
    master, job, directory, *arguments = sys.argv[1:]
    settings: Settings = {**ALONE, "spark.driver.memory": "512m", "spark.executor.memory": "512m"}
    settings |= {"spark.executor.cores": "1", **(ELASTIC if job == "elastic" else {})}
    settings |= dict(each.split("=", 1) for each in arguments if each.startswith("spark."))
    builder = configure(SparkSession.builder.master(master).appName(f"rmqfast {job}"))
    spark = builder.config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    answer = JOBS[job](spark, Path(directory), *(each for each in arguments if not each.startswith("spark.")))
    spark.stop()
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
