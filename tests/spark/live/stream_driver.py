"""A driver in a process of its own, to be killed: a stream of a topic into Parquet until its standard input ends."""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import rmqfast.spark
from tests.spark.cluster import ALONE, Settings
from tests.spark.engines import PYTHON

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: Settings = {
    **ALONE,
    "spark.sql.session.timeZone": "UTC",
    "spark.executor.memory": "512m",
    "spark.task.maxFailures": "20",
    "spark.deploy.maxExecutorRetries": "-1",
}


def main(engine: str, directory: str, master: str, options: dict[str, str]) -> None:
    """Runs the stream; says `running` once it does, and `ended` once it has stored all there is."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.Builder().master(master).config(map=SETTINGS)
    spark: SparkSession = rmqfast.spark.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("FATAL")
    if engine == PYTHON:
        spark.dataSource.register(rmqfast.spark.RocketMQDataSource)
    frame = spark.readStream.format(engine).options(**options).load()
    writer = frame.writeStream.format("parquet").option("checkpointLocation", f"{directory}/checkpoint")
    query = writer.trigger(processingTime="100 milliseconds").start(f"{directory}/out")
    print("running", spark.sparkContext.applicationId, flush=True)  # noqa: T201
    # whoever started this ends it; a query that fails ends it, too
    ended = threading.Thread(target=obey, args=(spark,), daemon=True)
    ended.start()
    while ended.is_alive():
        query.awaitTermination(1)
    query.processAllAvailable()
    query.stop()
    print("ended", flush=True)  # noqa: T201


def obey(spark: SparkSession) -> None:
    """Kills a task for each line of the standard input, until that ends."""
    context: Any = spark.sparkContext._jsc.sc()  # noqa: SLF001 - PySpark has no call that kills one task
    for _ in sys.stdin:
        for stage in spark.sparkContext.statusTracker().getActiveStageIds():
            tasks = context.statusStore().taskList(stage, 0, 1000)
            running = [tasks.apply(i) for i in range(tasks.size()) if tasks.apply(i).status() == "RUNNING"]
            for task in running[:1]:
                context.killTaskAttempt(task.taskId(), True, "by chance")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4]))
