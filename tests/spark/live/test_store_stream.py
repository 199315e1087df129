"""`readStream` with `storePath`: a live broker's store is followed, each message comes once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rmqfast import Mirror
from rmqfast.spark import read_store
from tests.golden_stores import PathOf
from tests.mirror.copies import caught_up
from tests.spark.engines import ENGINES, SIZED_ENGINES
from tests.spark.live import topics
from tests.spark.live.streams import ended, write
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """The data source that reads."""
    return str(request.param)


def stream(spark: SparkSession, engine: str, path: Path, **options: str) -> DataFrame:
    given = {"storePath": str(path), "startingOffsets": "earliest"} | options
    return spark.readStream.format(engine).options(**given).load()


def ordered(frame: DataFrame) -> list[dict[str, object]]:
    return [row.asDict() for row in frame.sort("physical_offset").collect()]


def test_a_store_that_nobody_writes_to_gives_what_a_batch_gives(
    spark: SparkSession, engine: str, golden_store: PathOf, tmp_path: Path
) -> None:
    path = golden_store("basic-4.9.4")
    for name, options in {"all": {}, "some": {"topic": "fx_q1", "tags": "TagA", "partitionBytes": "100000"}}.items():
        ended(write(stream(spark, engine, path, **options), tmp_path / name))
        wanted = read_store(spark, path, options.get("topic"), tags=options.get("tags", "*"))
        assert ordered(spark.read.parquet(str(tmp_path / name / "out"))) == ordered(wanted)


def test_a_live_store_is_followed_from_checkpoint_to_checkpoint(
    spark: SparkSession, engine: str, tmp_path: Path
) -> None:
    with topics.cluster_in(tmp_path / "store", brokers=1) as cluster:
        topics.create(cluster, "orders")
        for _ in range(3):
            topics.send(cluster, 400)
            ended(write(stream(spark, engine, tmp_path / "store", topic="orders"), tmp_path))
    found = spark.read.parquet(str(tmp_path / "out"))
    assert found.count() == 1200
    assert ordered(found) == ordered(read_store(spark, tmp_path / "store", "orders"))


def test_a_mirror_is_followed_while_it_grows(spark: SparkSession, engine: str, tmp_path: Path) -> None:
    store, copies = tmp_path / "store", tmp_path / "copies"
    with topics.cluster_in(store, brokers=1) as cluster, Mirror(copies, name_server=cluster.name_server) as mirror:
        topics.create(cluster, "orders")
        topics.send(cluster, 100)
        copy = caught_up(mirror, store).directory
        query = write(stream(spark, engine, copy, topic="orders"), tmp_path, processingTime="50 milliseconds")
        for first in range(100, 1300, 100):
            topics.send(cluster, 100, first=first)
        until(lambda: sum(progress["numInputRows"] for progress in query.recentProgress) >= 1300)
        query.stop()
    found = spark.read.parquet(str(tmp_path / "out"))
    assert found.count() == 1300
    assert ordered(found) == ordered(read_store(spark, store, "orders"))


@pytest.mark.parametrize("engine", SIZED_ENGINES)
def test_a_batch_has_no_more_bytes_than_allowed(
    spark: SparkSession, engine: str, golden_store: PathOf, tmp_path: Path
) -> None:
    frame = stream(spark, engine, golden_store("basic-4.9.4"), maxBytesPerTrigger="500000")
    query = ended(write(frame, tmp_path))
    sizes = [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]
    assert (len(sizes) > 2, sum(sizes)) == (True, 2779)
    found = spark.read.parquet(str(tmp_path / "out"))
    assert ordered(found) == ordered(read_store(spark, golden_store("basic-4.9.4"), None))


def test_a_store_begins_at_its_end_unless_told_otherwise(spark: SparkSession, engine: str, tmp_path: Path) -> None:
    with topics.cluster_in(tmp_path / "store", brokers=1) as cluster:
        topics.create(cluster, "orders")
        topics.send(cluster, 40)
        frame = stream(spark, engine, tmp_path / "store", topic="orders", startingOffsets="latest")
        ended(write(frame, tmp_path))
        topics.send(cluster, 7, first=40)
        ended(write(frame, tmp_path))
    assert spark.read.parquet(str(tmp_path / "out")).count() == 7
