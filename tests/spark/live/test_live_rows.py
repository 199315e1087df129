"""Rows that Rust makes of its vectors: the bytes that Spark's generated code makes of them, and where."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rmqfast
from rmqfast import EmbeddedCluster, Message
from rmqfast.store import COLUMNS
from tests import golden_stores
from tests.golden_stores import PathOf
from tests.spark.engines import JVM
from tests.spark.live.streams import ended, stream
from tests.spark.live.test_live_source import load
from tests.spark.live.topics import MESSAGES, LiveCluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(pyspark.__version__ < "4.0", reason="Spark 3.5 has another Scala: its own code makes the rows"),
]


def stored(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    options = {"storePath": str(path), "brokerName": "broker-a", "failOnDataLoss": "false"} | options
    return spark.read.format(JVM).options(**options).load()


def execution(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution()  # noqa: SLF001 - PySpark shows a plan, and gives it to nobody


def plan(frame: DataFrame) -> str:
    return str(execution(frame).executedPlan().toString())


def plan_as_run(frame: DataFrame) -> str:
    """The plan of a job that has run: Spark decides stage by stage."""
    unsafe_rows(frame)
    return plan(frame)


def unsafe_rows(frame: DataFrame) -> list[bytes]:
    """The rows of a job as the bytes that Spark sorts, shuffles and compares."""
    return sorted(bytes(row.getBytes()) for row in execution(frame).executedPlan().executeCollect())


def made_by_both(frame: DataFrame) -> int:
    """Compares the rows that Rust makes with those that Spark's own code makes; returns how many."""
    # no source takes the condition and every row meets it: with it Spark generates code, which makes the rows
    by_spark = frame.where("uuid() <> 'a'")
    assert "RustRows" in plan(frame)
    assert "ColumnarToRow" in plan(by_spark)
    rows = unsafe_rows(frame)
    assert rows == unsafe_rows(by_spark)
    return len(rows)


@pytest.mark.parametrize("name", golden_stores.NAMES)
def test_rows_of_a_store_of_rocketmq_are_those_of_spark(spark: SparkSession, golden_store: PathOf, name: str) -> None:
    assert made_by_both(stored(spark, golden_store(name))) == len(golden_stores.expected_rows(name))


@settings(max_examples=10)
@given(columns=st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=len(COLUMNS), unique=True))
def test_any_columns_in_any_order(spark: SparkSession, golden_store: PathOf, columns: list[str]) -> None:
    frame = stored(spark, golden_store("basic-4.9.4"), columns=",".join(columns), topic="fx_q4")
    assert made_by_both(frame) == 451


def test_rows_of_a_topic_are_those_of_spark(spark: SparkSession, live_cluster: LiveCluster) -> None:
    """Answers of a few messages each, some with bodies that were compressed."""
    frame = load(spark, JVM, live_cluster, pullBatchSize="7")
    assert made_by_both(frame) == MESSAGES
    assert made_by_both(frame.unionAll(frame)) == 2 * MESSAGES


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    """A broker for topics of single tests."""
    with EmbeddedCluster() as started:
        yield started


def test_values_of_all_sizes(spark: SparkSession, cluster: EmbeddedCluster) -> None:
    """One row at a time, and many at once; maps of more pairs than a word has bits."""
    chance = random.Random(5)
    sizes = [1, 7, 8, 9, 300_000, 2, (4 << 20) - 20_000, *(chance.randrange(1, 40) for _ in range(1000)), 1]
    with rmqfast.Producer("tests", name_server=cluster.name_server) as producer:
        for number, size in enumerate(sizes):
            properties = {f"p{n}": "é" * n for n in range(number % 150 if number < 200 else 0)}
            producer.send(Message("sizes", chance.randbytes(size), properties=properties))
    frame = spark.read.format(JVM).options(nameServer=cluster.name_server, topic="sizes").load()
    assert made_by_both(frame) == len(sizes)


def test_rust_makes_rows_where_all_columns_become_rows(
    spark: SparkSession, live_cluster: LiveCluster, tmp_path: Path
) -> None:
    frame = load(spark, JVM, live_cluster)
    assert plan_as_run(frame.repartition(3)).count("RustRows") == 1
    assert plan_as_run(frame.unionAll(frame)).count("RustRows") == 1
    # generated code reads the vectors itself, of those columns alone that it needs
    for reads_vectors in (
        frame.groupBy("tags").count(),
        frame.where("length(body) > 10"),
        frame.selectExpr("tags || 'x'"),
    ):
        found = plan_as_run(reads_vectors)
        assert "RustRows" not in found
        assert "ColumnarToRow" in found
    frame.write.parquet(str(tmp_path / "out"))
    written = spark.read.parquet(str(tmp_path / "out"))
    assert sorted(map(repr, written.collect())) == sorted(map(repr, frame.collect()))


def test_a_row_holds_until_the_next_one_alone(spark: SparkSession, live_cluster: LiveCluster) -> None:
    """What keeps rows copies them: a sort, a join, a shuffle, a cache, a limit that ends within a batch."""
    frame = load(spark, JVM, live_cluster)
    wanted = sorted(map(repr, frame.where("uuid() <> 'a'").collect()))
    joined = frame.join(frame.select("msg_id").distinct().hint("shuffle_merge"), "msg_id").select(*frame.columns)
    assert len(frame.take(100)) == 100
    for kept in (frame.sort("body"), frame.repartition(5, "keys"), joined):
        assert "InMemoryTableScan" not in plan_as_run(kept)
        assert sorted(map(repr, kept.collect())) == wanted
    # last: once it is asked for, Spark reads the cache for all the others, too
    assert sorted(map(repr, frame.cache().collect())) == wanted
    frame.unpersist()


def test_a_stream_has_them_too(spark: SparkSession, live_cluster: LiveCluster, tmp_path: Path) -> None:
    found: list[str] = []

    def keep(batch: DataFrame, _number: int) -> None:
        found.extend(map(repr, batch.collect()))

    frame = stream(spark, JVM, live_cluster.name_server, maxOffsetsPerTrigger="500")
    writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path))
    query = ended(writer.trigger(availableNow=True).start())
    assert "RustRows" in query._jsq.explainInternal(False)  # noqa: SLF001 - PySpark prints it
    assert sorted(found) == sorted(map(repr, load(spark, JVM, live_cluster).collect()))
