"""Statements with the secrets of an account: `python -m tests.spark.secrets_job NAME_SERVER DIRECTORY`.

Prints what a user sees of them. Spark's event log goes to the directory.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import rmqfast.spark
from tests.spark.cluster import ALONE, Settings

SECRETS = {"secretKey": "hush-secret", "accessKey": "hush-access", "securityToken": "hush-token"}
CATALOG = "spark.sql.catalog.rmq"


def show(*values: object) -> None:
    sys.stdout.write(" ".join(map(str, values)) + "\n")


def main(name_server: str, directory: Path) -> None:
    place = {"nameServer": name_server, **SECRETS}
    settings: Settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": str(directory),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        CATALOG: "org.rmqfast.spark.RocketMQCatalog",
        **{f"{CATALOG}.{key}": value for key, value in place.items()},
    }
    builder = SparkSession.Builder().master("local[2]").config(map=ALONE | settings)
    spark = rmqfast.spark.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("FATAL")
    options = ", ".join(f"{key} '{value}'" for key, value in {**place, "topic": "orders"}.items())
    spark.sql(f"CREATE TABLE orders USING `rocketmq-columnar` OPTIONS ({options})")
    for table in ("rmq.orders", "orders"):
        for statement in ("DESCRIBE EXTENDED", "SHOW TBLPROPERTIES", "SHOW CREATE TABLE"):
            try:
                shown = spark.sql(f"{statement} {table}")
            except Exception as error:  # noqa: BLE001 - what an error shows counts, too
                show(error)
            else:
                show(shown.collect())
        frame = spark.table(table)
        frame.explain("extended")
        show(frame.count(), frame.where("tags = 'paid'").collect()[:1])
        sent = f"INSERT INTO {table} SELECT binary('x') AS body"
        spark.sql(f"EXPLAIN EXTENDED {sent}").show(truncate=False)
        spark.sql(sent)
    stream = spark.readStream.format("rocketmq-columnar").options(**place, topic="orders").load()
    writer = stream.writeStream.format("rocketmq-columnar").options(**place, topic="copies").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(directory / "checkpoint")).start()
    query.awaitTermination()
    query.explain(extended=True)
    show(query.lastProgress, stream)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
