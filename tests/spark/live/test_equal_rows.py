"""The same messages from the stores' directories and from the brokers are the same rows, column by column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rmqfast.spark import read_store, read_topic
from rmqfast.store import COLUMNS
from tests.spark.live import topics
from tests.spark.live.conftest import MESSAGES, LiveCluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

Rows = list[dict[str, Any]]
BOTH: dict[str, dict[str, Any]] = {
    "all": {},
    "tag": {"tags": "paid || refunded"},
    "tags of one hash": {"tags": "Aa"},
    "sql": {"sql": "number > 100 AND region = 'eu'"},
    "sql and tags": {"sql": "number BETWEEN 10 AND 500", "tags": "paid"},
    "keys": {"keys": [f"key-{number}" for number in range(0, 1200, 3)] + [f"key-{number}" for number in range(100)]},
    "keys and tags": {"keys": [f"key-{number}" for number in range(1000)], "tags": "Aa"},
    "bodies by their CRC": {"verify_crc": True, "tags": "paid"},
    "queues": {"queue_ids": [0, 3]},
    "columns": {"columns": ["queue_offset", "tags", "queue_id", "broker_name"]},
}


def rows_of(frame: DataFrame) -> Rows:
    rows: Rows = [row.asDict() for row in frame.collect()]
    return sorted(rows, key=lambda row: (row["broker_name"], row["queue_id"], row["queue_offset"]))


def stored(spark: SparkSession, cluster: LiveCluster, **arguments: Any) -> DataFrame:
    frames = [
        read_store(spark, path, "orders", broker_name=name, engine="arrow", **arguments)
        for name, path in topics.stores(cluster.directory).items()
    ]
    return frames[0].unionByName(frames[1])


@pytest.mark.parametrize("arguments", BOTH.values(), ids=BOTH)
def test_a_store_and_its_broker_give_the_same_rows(
    spark: SparkSession, live_cluster: LiveCluster, arguments: dict[str, Any]
) -> None:
    wanted = rows_of(stored(spark, live_cluster, **arguments))
    assert len(wanted) > 50
    assert rows_of(read_topic(spark, live_cluster.name_server, "orders", **arguments)) == wanted


def test_mapping_by_pandas_gives_the_same_rows(spark: SparkSession, live_cluster: LiveCluster) -> None:
    frame = read_topic(spark, live_cluster.name_server, "orders", engine="pandas")
    assert frame.columns == list(COLUMNS)
    assert rows_of(frame) == rows_of(stored(spark, live_cluster))
    assert frame.count() == MESSAGES


def test_times_are_exact_and_half_open(spark: SparkSession, live_cluster: LiveCluster) -> None:
    times = sorted(row[0] for row in stored(spark, live_cluster).selectExpr("unix_millis(store_timestamp)").collect())
    bounds = {"start_time": times[300], "end_time": times[900]}
    wanted = rows_of(stored(spark, live_cluster, **bounds))
    assert 500 < len(wanted) < 700
    assert rows_of(read_topic(spark, live_cluster.name_server, "orders", **bounds)) == wanted
