"""A driver in a process of its own: the executors of a cluster write a topic into Parquet; it says how many they are.

usage: python -m tests.spark.live.parquet_driver ENGINE MASTER NAME_SERVER TOPIC DIRECTORY
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import rmqfast.spark
from tests.spark.cluster import ALONE, SHARED, executors
from tests.spark.engines import PYTHON

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(engine: str, master: str, name_server: str, topic: str, directory: str) -> None:
    """Runs the job."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.Builder().master(master).appName("topic into Parquet").config(map=ALONE | SHARED)
    spark: SparkSession = rmqfast.spark.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if engine == PYTHON:
        spark.dataSource.register(rmqfast.spark.RocketMQDataSource)
    frame = spark.read.format(engine).option("nameServer", name_server).option("topic", topic).load()
    frame.write.parquet(directory)
    answer = {"executors": len(executors(str(spark.sparkContext.applicationId)))}
    spark.stop()
    print(json.dumps(answer), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
