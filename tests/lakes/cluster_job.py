"""Tables on a cluster, whose executors have no jars but those that Spark ships.

`python -m tests.lakes.cluster_job DIRECTORY`, or the same file by spark-submit.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import rmqfast.spark
from tests.lakes.spark_lake import SparkLake, formats_of_this_spark
from tests.spark.cluster import ALONE, Settings
from tests.tables.stored_rows import append


def main(directory: Path) -> None:
    settings: Settings = {
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(directory / "ice"),
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    builder = SparkSession.Builder().config(map=ALONE | settings)
    builder = builder if "PYSPARK_GATEWAY_PORT" in os.environ else builder.master("local-cluster[1,1,1024]")
    spark = rmqfast.spark.configure(builder, tables=formats_of_this_spark()).getOrCreate()
    append(directory / "store", 100)
    for format_ in formats_of_this_spark():
        lake = SparkLake(spark, directory / format_, format_)
        rows = lake.stream_of(directory / "store")
        lake.create(rows)
        lake.start(rows.writeStream)
        sys.stdout.write(f"{format_} {lake.read().count()}\n")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
