"""Sends a DataFrame from the executors of a cluster; the last line of output is JSON: what they imported from where.

usage: python -m tests.spark.sink.shipped_job MASTER NAME_SERVER TOPIC ROWS [SETTING=VALUE ...]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

import rmqfast.spark
from tests.spark.cluster import ALONE, SHARED


def places(_batches: Iterator[Any]) -> Iterator[Any]:
    """Where an executor's worker has this package and its extension from, and which Python it is."""
    import os
    import sys

    import pyarrow as pa

    import rmqfast
    from rmqfast.store import open_store

    assert open_store is not None
    yield pa.record_batch({"place": [rmqfast.__file__], "python": [sys.executable], "directory": [os.getcwd()]})  # noqa: PTH109


def main() -> None:
    """Runs the job."""
    master, name_server, topic, rows, *more = sys.argv[1:]
    settings = ALONE | SHARED | dict(setting.split("=", 1) for setting in more)
    builder = rmqfast.spark.configure(SparkSession.builder.master(master).appName("shipped"))
    spark = builder.config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    seen = spark.range(0, 4, 1, 4).mapInArrow(places, "place string, python string, directory string").distinct()
    answer: dict[str, Any] = {"places": [row.asDict() for row in seen.collect()]}
    frame = spark.range(0, int(rows), 1, 8).selectExpr("CAST(id AS string) AS body", "array('k', string(id)) AS keys")
    answer["written"] = rmqfast.spark.write_topic(frame, name_server, topic).counts()
    if hasattr(spark, "dataSource"):
        spark.dataSource.register(rmqfast.spark.RocketMQDataSource)
        options = {"nameServer": name_server, "topic": f"{topic}-again"}
        frame.write.format("rocketmq").options(**options).mode("append").save()
    spark.stop()
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
