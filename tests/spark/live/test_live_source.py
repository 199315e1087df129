"""Both data sources with `nameServer`, as their users meet them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rmqfast.store import COLUMNS
from tests.spark.engines import python_source
from tests.spark.in_process import source_reader, source_rows
from tests.spark.live.test_equal_rows import rows_of, stored
from tests.spark.live.topics import MESSAGES, LiveCluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def given(cluster: LiveCluster, **options: str) -> dict[str, str]:
    return {"nameServer": cluster.name_server, "topic": "orders"} | options


def load(spark: SparkSession, engine: str, cluster: LiveCluster, **options: str) -> DataFrame:
    return spark.read.format(engine).options(**given(cluster, **options)).load()


@pytest.mark.spark
def test_its_rows_are_those_of_the_stores(spark: SparkSession, engine: str, live_cluster: LiveCluster) -> None:
    """What options choose of them is seen in `test_equal_rows.py`, without a session."""
    frame = load(spark, engine, live_cluster)
    assert rows_of(frame) == rows_of(stored(spark, live_cluster))
    assert frame.columns == list(COLUMNS)


@pytest.mark.spark
def test_offsets_by_broker_and_queue_bound_a_read(spark: SparkSession, engine: str, live_cluster: LiveCluster) -> None:
    start = {"orders": {"broker-a": {"0": 20, "1": -1, "2": -2}, "*": {"0": 7}}}
    end = {"orders": {"broker-a": {"0": 25}, "broker-b": {"0": 9, "1": -2, "2": 3, "3": -1}}}
    frame = load(spark, engine, live_cluster, startingOffsets=json.dumps(start), endingOffsets=json.dumps(end))
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


@python_source
def test_partitions_are_as_many_and_as_small_as_asked_for(live_cluster: LiveCluster) -> None:
    assert len(source_reader(given(live_cluster)).partitions()) == 2  # a small one for each broker
    assert len(source_reader(given(live_cluster, minPartitions="5")).partitions()) >= 5
    small = given(live_cluster, maxRowsPerPartition="50", columns="queue_offset")
    assert len(source_reader(small).partitions()) == MESSAGES // 50
    assert len(source_rows(small)) == MESSAGES


@pytest.mark.spark
def test_a_schema_chooses_columns(spark: SparkSession, engine: str, live_cluster: LiveCluster) -> None:
    reader = spark.read.format(engine).schema("queue_id int, tags string").option("topic", "orders")
    frame = reader.option("nameServer", live_cluster.name_server).load()
    assert (frame.columns, frame.where("tags = 'Aa'").count()) == (["queue_id", "tags"], MESSAGES // 5)
