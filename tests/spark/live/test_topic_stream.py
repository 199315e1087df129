"""`readStream` of both sources on a cluster: each message once, whatever is restarted."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rmqfast
from tests.spark.engines import HAS_PYTHON_SOURCES, JVM, PYTHON, SIZED_ENGINES
from tests.spark.live import topics
from tests.spark.live.streams import each_once, ended, places, stream, write
from tests.spark.live.test_equal_rows import rows_of, stored
from tests.spark.live.topics import MESSAGES, LiveCluster
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]


def ends(name_server: str, topic: str = "orders") -> dict[tuple[str, int], int]:
    with rmqfast.Admin(name_server=name_server) as admin:
        return {(row.broker_name, row.queue_id): row.max_offset for row in admin.topics.status(topic)}


@pytest.mark.old_spark
def test_a_stream_of_what_there_is_equals_a_batch(
    spark: SparkSession, engine: str, live_cluster: LiveCluster, tmp_path: Path
) -> None:
    ended(write(stream(spark, engine, live_cluster.name_server), tmp_path))
    assert rows_of(spark.read.parquet(str(tmp_path / "out"))) == rows_of(stored(spark, live_cluster))


@pytest.mark.parametrize("engine", SIZED_ENGINES)
def test_a_batch_takes_as_many_as_allowed_and_available_now_takes_all(
    spark: SparkSession, engine: str, live_cluster: LiveCluster, tmp_path: Path
) -> None:
    query = ended(write(stream(spark, engine, live_cluster.name_server, maxOffsetsPerTrigger="500"), tmp_path))
    counts = [progress["numInputRows"] for progress in query.recentProgress]
    assert [count for count in counts if count] == [500, 500, 200]
    last = query.lastProgress
    assert last is not None
    source = last["sources"][0]
    # JSON, a dict, or in PySpark 4.0 the text of a dict
    latest = ast.literal_eval(str(source["latestOffset"]))
    assert latest["orders"]["broker-a"]["0"] == MESSAGES // 8


def test_it_goes_on_at_its_checkpoint_and_finds_new_queues_and_brokers(
    spark: SparkSession, engine: str, tmp_path: Path
) -> None:
    with (
        topics.cluster_in(tmp_path / "cluster", brokers=2) as cluster,
        rmqfast.Admin(name_server=cluster.name_server) as admin,
    ):
        admin.create_topic("orders", queues=2, broker_names=["broker-a"])
        topics.fill(cluster, 1000, "orders")
        ended(write(stream(spark, engine, cluster.name_server), tmp_path))
        assert places(spark, tmp_path) == each_once(ends(cluster.name_server))
        admin.create_topic("orders", queues=4)
        topics.fill(cluster, 3000, "orders")
        ended(write(stream(spark, engine, cluster.name_server), tmp_path))
        ended(write(stream(spark, engine, cluster.name_server), tmp_path))
        found = ends(cluster.name_server)
        assert (len(found), sum(found.values())) == (8, 4000)
        assert places(spark, tmp_path) == each_once(found)


def test_without_starting_offsets_it_begins_with_what_comes(spark: SparkSession, engine: str, tmp_path: Path) -> None:
    with topics.cluster_in(tmp_path / "cluster", brokers=1) as cluster:
        topics.create(cluster, "orders", queues=2)
        topics.fill(cluster, 100, "orders")
        before = ends(cluster.name_server)
        options = {"nameServer": cluster.name_server, "topic": "orders"}
        frame = spark.readStream.format(engine).options(**options).load()
        query = write(frame, tmp_path, processingTime="200 milliseconds")
        until(lambda: query.recentProgress, patience=300)
        topics.fill(cluster, 60, "orders")
        query.processAllAvailable()
        query.stop()
        assert places(spark, tmp_path) == each_once(ends(cluster.name_server)) - each_once(before)
        assert places(spark, tmp_path).total() == 60


def test_a_group_has_the_offsets_of_the_stream_if_asked_for(spark: SparkSession, engine: str, tmp_path: Path) -> None:
    with topics.cluster_in(tmp_path / "cluster", brokers=2) as cluster:
        topics.create(cluster, "orders", queues=2)
        topics.fill(cluster, 400, "orders")
        frame = stream(
            spark, engine, cluster.name_server, group="lake", commitOffsets="true", maxOffsetsPerTrigger="150"
        )
        ended(write(frame, tmp_path))
        before = ends(cluster.name_server)
        topics.fill(cluster, 40, "orders")
        ended(write(frame, tmp_path))
        with rmqfast.Admin(name_server=cluster.name_server) as admin:
            rows = {(row.broker_name, row.queue_id): row for row in admin.groups.progress("lake", "orders")}
        assert sorted(rows) == sorted(ends(cluster.name_server))
        # Spark tells of a batch when the next one begins: of the last one nobody hears
        assert all(before[queue] <= row.consumer_offset <= row.broker_offset for queue, row in rows.items()), rows


@pytest.mark.parametrize("order", [(PYTHON, JVM, PYTHON), (JVM, JVM)], ids=len)
def test_a_checkpoint_is_that_of_both_engines(spark: SparkSession, tmp_path: Path, order: tuple[str, ...]) -> None:
    if not HAS_PYTHON_SOURCES and PYTHON in order:
        pytest.skip("PySpark 3.5 has no data sources in Python")
    with topics.cluster_in(tmp_path / "cluster", brokers=1) as cluster:
        topics.create(cluster, "orders", queues=2)
        for engine in order:
            topics.fill(cluster, 300, "orders")
            query = ended(write(stream(spark, engine, cluster.name_server), tmp_path))
            assert query.exception() is None
        assert places(spark, tmp_path) == each_once(ends(cluster.name_server))
