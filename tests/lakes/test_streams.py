"""A Spark stream writes each message once to a table, as a scan has it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rmqfast
from rmqfast.spark.schema import row_schema
from tests.golden_stores import PathOf
from tests.lakes.spark_lake import SparkLake, in_microseconds
from tests.spark.live.topics import cluster_in, create, send
from tests.tables.stored_rows import append, by_place, scanned

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark


def wanted(store: Path) -> object:
    return in_microseconds(scanned(store))


@pytest.mark.old_spark
@pytest.mark.parametrize("name", ["basic-4.9.4", "delaytx-5.3.3"])
def test_a_table_has_the_rows_of_a_scan(golden_store: PathOf, lake: SparkLake, name: str) -> None:
    store = golden_store(name)
    rows = lake.stream_of(store)
    lake.create(rows)
    lake.start(rows.writeStream)
    assert lake.rows() == wanted(store)
    held = lake.read().drop("day")
    assert held.dtypes == [(field.name, field.dataType.simpleString()) for field in row_schema().fields]


def test_a_row_is_in_the_partition_of_its_day_in_utc(lake: SparkLake, tmp_path: Path) -> None:
    append(tmp_path / "store", 10)
    rows = lake.stream_of(tmp_path / "store")
    lake.create(rows)
    lake.start(rows.writeStream)
    days = {row["store_timestamp"].date() for row in scanned(tmp_path / "store")}
    if lake.format == "delta":
        found = {row["day"] for row in lake.read().select("day").collect()}
    else:
        parts = lake.spark.table(f"{lake.name()}.partitions").selectExpr("partition.store_timestamp_day")
        found = {row[0] for row in parts.collect()}
    assert found == days


def test_a_stream_goes_on_where_it_ended(lake: SparkLake, tmp_path: Path) -> None:
    store = tmp_path / "store"
    append(store, 600)
    lake.create(lake.stream_of(store))
    for more in (0, 300, 0):
        if more:
            append(store, more, start=600)
        lake.start(lake.stream_of(store, maxBytesPerTrigger=30_000).writeStream)
        assert lake.rows() == wanted(store)


@pytest.mark.old_spark
def test_a_batch_whose_checkpoint_was_lost_is_not_written_again(lake: SparkLake, tmp_path: Path) -> None:
    """As of a driver that was killed between the commit of the table and that of the checkpoint."""
    store = tmp_path / "store"
    append(store, 600)
    lake.create(lake.stream_of(store))
    lake.start(lake.stream_of(store, maxBytesPerTrigger=30_000).writeStream)
    commits = sorted((tmp_path / "checkpoint/commits").glob("[0-9]*"), key=lambda path: int(path.name))
    assert len(commits) > 1
    for path in (commits[-1], commits[-1].with_name(f".{commits[-1].name}.crc")):
        path.unlink()
    append(store, 300, start=600)
    lake.start(lake.stream_of(store, maxBytesPerTrigger=30_000).writeStream)
    assert lake.rows() == wanted(store)


def test_a_stream_goes_on_behind_a_compaction(lake: SparkLake, tmp_path: Path) -> None:
    store = tmp_path / "store"
    append(store, 600)
    lake.create(lake.stream_of(store))
    lake.start(lake.stream_of(store, maxBytesPerTrigger=30_000).writeStream)
    files = lake.files()
    compact = {
        "delta": f"OPTIMIZE {lake.name()}",
        "iceberg": f"CALL ice.system.rewrite_data_files(table => '{lake.name().removeprefix('ice.')}', "
        "options => map('rewrite-all', 'true'))",
    }
    lake.spark.sql(compact[lake.format]).collect()
    append(store, 300, start=600)
    lake.start(lake.stream_of(store).writeStream)
    assert lake.rows() == wanted(store)
    assert lake.files() < files


def test_a_lost_checkpoint_writes_rows_again_and_merge_does_not(lake: SparkLake, tmp_path: Path) -> None:
    store = tmp_path / "store"
    append(store, 500)
    rows = lake.stream_of(store)
    for table in ("appended", "merged"):
        lake.create(rows, table=table)

    def merge_batch(batch: DataFrame, _: int) -> None:
        batch.createOrReplaceTempView("batch")
        key = "t.topic = b.topic AND t.queue_id = b.queue_id AND t.queue_offset = b.queue_offset"
        names = [field.name for field in row_schema().fields]
        table, columns, values = lake.name("merged"), ", ".join(names), ", ".join(f"b.{name}" for name in names)
        merge = f"MERGE INTO {table} t USING batch b ON {key} WHEN NOT MATCHED THEN INSERT"
        # the session of the batch, which has the view
        batch.sparkSession.sql(f"{merge} ({columns}) VALUES ({values})")

    for number in (1, 2):
        lake.start(rows.writeStream, table="appended", checkpoint=f"appended-{number}")
        merging = rows.writeStream.foreachBatch(merge_batch).trigger(availableNow=True)
        merging.option("checkpointLocation", str(tmp_path / f"merged-{number}")).start().awaitTermination()
    assert lake.rows("merged") == wanted(store)
    assert lake.read("appended").count() == 1000


def test_a_live_topic_becomes_a_table(lake: SparkLake, tmp_path: Path) -> None:
    with cluster_in(tmp_path / "cluster") as cluster:
        create(cluster, "orders")
        options = {"nameServer": cluster.name_server, "topic": "orders", "startingOffsets": "earliest"}
        rows = lake.spark.readStream.format("rocketmq-columnar").options(**options).load()
        lake.create(rows)
        for first in (0, 300):
            send(cluster, 300, first=first)
            lake.start(rows.writeStream)
        with rmqfast.open_cluster(cluster.name_server) as topics:
            held = topics.scan("orders").to_arrow().to_pylist()
    assert len(held) == 600
    assert lake.rows() == in_microseconds(by_place(held))
