"""A client of Spark Connect in a process of its own: reads, streams and writes topics, says what came.

usage: python -m tests.spark.live.connect_driver SERVER NAME_SERVER DIRECTORY
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import rmqfast.spark
from tests.spark.engines import ENGINES, said
from tests.spark.live.streams import ended, places, stream, write

PLACE = ("broker_name", "queue_id", "queue_offset")


def main(server: str, name_server: str, directory: str) -> None:
    """Prints one JSON object: rows by engine of the topic `orders`."""
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    spark: Any = rmqfast.spark.configure(builder.remote(server)).getOrCreate()
    spark.dataSource.register(rmqfast.spark.RocketMQDataSource)
    answer: dict[str, Any] = {}
    for engine in ENGINES:
        rows = load(spark, engine, name_server, "orders").where("tags = 'A'").select(*PLACE).collect()
        # the first query of a server compiles its plans and starts its workers
        ended(write(stream(spark, engine, name_server), Path(directory) / engine), seconds=600)
        answer[engine] = {
            "read": sorted([*row] for row in rows),
            "streamed": sorted([*place] for place in places(spark, Path(directory) / engine).elements()),
            "refused": refusal(spark, engine, name_server),
        }
    frame = spark.range(10).selectExpr("CAST(id AS STRING) AS body")
    sink = frame.write.format("rocketmq").option("nameServer", name_server).option("topic", "written")
    sink.mode("append").save()
    print(json.dumps(answer), flush=True)  # noqa: T201
    spark.stop()


def load(spark: Any, engine: str, name_server: str, topic: str) -> Any:
    return spark.read.format(engine).options(nameServer=name_server, topic=topic).load()


def refusal(spark: Any, engine: str, name_server: str) -> str:
    try:
        load(spark, engine, name_server, "order").schema  # noqa: B018 - nobody is asked before
    except Exception as error:  # noqa: BLE001 - Spark Connect has classes of its own
        return said(error)
    return ""


if __name__ == "__main__":
    main(*sys.argv[1:])
