"""The data source `rocketmq` with `nameServer`, as its users meet it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rmqfast.spark import read_topic
from rmqfast.store import COLUMNS
from tests.spark.live.conftest import MESSAGES, LiveCluster
from tests.spark.live.test_equal_rows import BOTH, OPTIONS, rows_of, stored, text_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def load(spark: SparkSession, cluster: LiveCluster, **options: str) -> DataFrame:
    given = {"nameServer": cluster.name_server, "topic": "orders"} | options
    return spark.read.format("rocketmq").options(**given).load()


# each is planned and read by Python workers of its own: what they have in common takes the time
FEW = [pytest.param(value, id=name, marks=() if name == "all" else pytest.mark.long) for name, value in BOTH.items()]


@pytest.mark.parametrize("arguments", FEW)
def test_its_rows_are_those_of_the_stores(
    spark: SparkSession, live_cluster: LiveCluster, arguments: dict[str, Any]
) -> None:
    options = {OPTIONS[name]: text_of(value) for name, value in arguments.items()}
    frame = load(spark, live_cluster, **options)
    assert rows_of(frame) == rows_of(stored(spark, live_cluster, **arguments))
    assert frame.columns == list(arguments.get("columns", COLUMNS))


def test_offsets_by_broker_and_queue_bound_a_read(spark: SparkSession, live_cluster: LiveCluster) -> None:
    start = {"orders": {"broker-a": {"0": 20, "1": -1, "2": -2}, "*": {"0": 7}}}
    end = {"orders": {"broker-a": {"0": 25}, "broker-b": {"0": 9, "1": -2, "2": 3, "3": -1}}}
    frame = load(spark, live_cluster, startingOffsets=json.dumps(start), endingOffsets=json.dumps(end))
    counted = frame.groupBy("broker_name", "queue_id").agg({"queue_offset": "min", "*": "count"}).collect()
    found = {(row[0], row[1]): (row["min(queue_offset)"], row["count(1)"]) for row in counted}
    each = MESSAGES // 8
    assert found == {
        ("broker-a", 0): (20, 5),
        ("broker-a", 2): (0, each),
        ("broker-a", 3): (0, each),
        ("broker-b", 0): (7, 2),
        ("broker-b", 2): (0, 3),
        ("broker-b", 3): (0, each),
    }


def test_latest_and_earliest_are_those_of_the_plan(spark: SparkSession, live_cluster: LiveCluster) -> None:
    assert load(spark, live_cluster, startingOffsets="latest").count() == 0
    assert load(spark, live_cluster, endingOffsets="earliest").count() == 0


def test_partitions_are_as_many_and_as_small_as_asked_for(spark: SparkSession, live_cluster: LiveCluster) -> None:
    assert load(spark, live_cluster).rdd.getNumPartitions() == 2  # a small one for each broker
    assert load(spark, live_cluster, minPartitions="5").rdd.getNumPartitions() >= 5
    small = load(spark, live_cluster, maxRowsPerPartition="50", columns="queue_offset")
    assert small.rdd.getNumPartitions() == MESSAGES // 50
    assert small.count() == MESSAGES


def test_a_schema_chooses_columns(spark: SparkSession, live_cluster: LiveCluster) -> None:
    reader = spark.read.format("rocketmq").schema("queue_id int, tags string").option("topic", "orders")
    frame = reader.option("nameServer", live_cluster.name_server).load()
    assert (frame.columns, frame.where("tags = 'Aa'").count()) == (["queue_id", "tags"], MESSAGES // 5)


def test_sql_can_use_it(spark: SparkSession, live_cluster: LiveCluster) -> None:
    options = f"nameServer '{live_cluster.name_server}', topic 'orders'"
    spark.sql(f"CREATE OR REPLACE TEMP VIEW live USING rocketmq OPTIONS ({options})")
    assert spark.sql("SELECT count(*) FROM live WHERE properties['region'] = 'eu'").first() == (MESSAGES // 2,)


def test_a_task_that_fails_and_runs_again_gives_the_same_rows(spark: SparkSession, live_cluster: LiveCluster) -> None:
    """Twice the same plan is twice the same rows, whatever came meanwhile: ends are fixed when it is made."""
    frame = read_topic(spark, live_cluster.name_server, "orders", end_offset={"*": {0: 30, 1: 30, 2: 30, 3: 30}})
    assert rows_of(frame) == rows_of(frame)
    assert frame.count() == 8 * 30
