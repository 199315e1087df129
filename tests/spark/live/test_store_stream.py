"""`readStream` with `storePath`: a live broker's store is followed, each message comes once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rmqfast.spark import read_store
from tests.spark.live import topics
from tests.spark.live.streams import ended, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]

Store = Callable[[str], Path]


def stream(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    given = {"storePath": str(path), "startingOffsets": "earliest"} | options
    return spark.readStream.format("rocketmq").options(**given).load()


def ordered(frame: DataFrame) -> list[dict[str, object]]:
    return [row.asDict() for row in frame.sort("physical_offset").collect()]


def test_a_store_that_nobody_writes_to_gives_what_a_batch_gives(
    spark: SparkSession, golden_store: Store, tmp_path: Path
) -> None:
    path = golden_store("basic-4.9.4")
    for name, options in {"all": {}, "some": {"topic": "fx_q1", "tags": "TagA", "partitionBytes": "100000"}}.items():
        ended(write(stream(spark, path, **options), tmp_path / name))
        wanted = read_store(spark, path, options.get("topic"), tags=options.get("tags", "*"))
        assert ordered(spark.read.parquet(str(tmp_path / name / "out"))) == ordered(wanted)


def test_a_live_store_is_followed_from_checkpoint_to_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    with topics.cluster_in(tmp_path / "store", brokers=1) as cluster:
        topics.create(cluster, "orders")
        for _ in range(3):
            topics.send(cluster, 400)
            ended(write(stream(spark, tmp_path / "store", topic="orders"), tmp_path))
    found = spark.read.parquet(str(tmp_path / "out"))
    assert found.count() == 1200
    assert ordered(found) == ordered(read_store(spark, tmp_path / "store", "orders"))


@pytest.mark.newest
def test_a_batch_has_no_more_bytes_than_allowed(spark: SparkSession, golden_store: Store, tmp_path: Path) -> None:
    frame = stream(spark, golden_store("basic-4.9.4"), maxBytesPerTrigger="500000")
    query = ended(write(frame, tmp_path))
    sizes = [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]
    assert (len(sizes) > 2, sum(sizes)) == (True, 2779)
    found = spark.read.parquet(str(tmp_path / "out"))
    assert ordered(found) == ordered(read_store(spark, golden_store("basic-4.9.4"), None))


def test_the_checkpoint_of_another_kind_of_stream_is_refused(
    spark: SparkSession, golden_store: Store, tmp_path: Path
) -> None:
    path = golden_store("basic-4.9.4")
    ended(write(stream(spark, path), tmp_path))
    with topics.cluster_in(tmp_path / "cluster", brokers=1) as cluster:
        topics.create(cluster, "orders")
        options = {"nameServer": cluster.name_server, "topic": "orders"}
        frame = spark.readStream.format("rocketmq").options(**options).load()
        with pytest.raises(Exception, match=r"checkpoint: expected one topic, 'orders'.*checkpointLocation of its own"):
            ended(write(frame, tmp_path))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"endingTimestamp": "2030-01-01"}, "option endingTimestamp: a stream has no end"),
        (
            {"startingOffsets": '{"fx_q1":{"*":{"0":3}}}', "topic": "fx_q1"},
            "begins at earliest, latest or starting",
        ),
    ],
)
def test_what_a_stream_of_a_store_cannot_do_is_refused(
    spark: SparkSession, golden_store: Store, tmp_path: Path, options: dict[str, str], text: str
) -> None:
    with pytest.raises(Exception, match=text):
        ended(write(stream(spark, golden_store("basic-4.9.4"), **options), tmp_path))
