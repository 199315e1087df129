"""The stores of several brokers in one read of Spark, by each engine, and in one stream."""

from __future__ import annotations

import importlib.util
import json
import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rmqfast
from rmqfast import AppendOptions, Message
from rmqfast.errors import ArgumentError, UnknownTopicError
from rmqfast.spark import map_store, read_store
from rmqfast.spark.ingest import ingest
from rmqfast.spark.reader import Engine
from tests.harm import damage_second_record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SMALL = AppendOptions(file_size=1 << 14, queue_file_size=2000, index_slots=10, index_entries=100)
ENGINES: tuple[Engine, ...] = ("columnar", "arrow", "pandas")
#: PySpark 3.5 has no sources in Python.
HAS_PYTHON_SOURCES = importlib.util.find_spec("pyspark.sql.datasource") is not None
SOURCES = ("rocketmq", "rocketmq-columnar") if HAS_PYTHON_SOURCES else ("rocketmq-columnar",)
PLACE = ("broker_name", "topic", "queue_id", "queue_offset", "physical_offset")


def fill(path: Path, topics: Sequence[str], count: int, start: int = 0) -> None:
    with rmqfast.open_store(path, mode="a", options=SMALL) as store:
        for number in range(start, start + count):
            store.append(Message(topics[number % len(topics)], b"%d" % number * 20, tags="ab"[number % 2]))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("brokers")
    fill(path / "broker-a", ("orders", "bills"), 300)
    fill(path / "broker-b", ("orders",), 200)
    fill(path / "broker-c", ("bills",), 40)
    return path


def scanned(stores: Any, topic: str | None = None, **arguments: Any) -> list[tuple[Any, ...]]:
    with rmqfast.open_stores(stores) as opened:
        rows = opened.scan(topic, columns=PLACE, **arguments).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.select(*PLACE).collect())


def explained(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().toString())  # noqa: SLF001


@pytest.mark.parametrize("engine", ENGINES)
def test_a_read_has_the_messages_of_each_store(spark: SparkSession, directory: Path, engine: Engine) -> None:
    by_name = {"x": directory / "broker-a", "y": directory / "broker-b"}
    for stores in (directory, str(directory / "broker-[ab]"), by_name):
        for topic in (None, "orders"):
            frame = read_store(spark, stores, topic, engine=engine, min_partitions=5)
            assert frame.rdd.getNumPartitions() >= 5
            assert rows(frame) == scanned(stores, topic)
    bounds = {"x": {0: 120}, "*": {0: 190}}
    frame = read_store(spark, by_name, "orders", engine=engine, start_offset=bounds, tags="a")
    assert rows(frame) == scanned(by_name, "orders", start_offset=bounds, tags="a")
    assert frame.count() == 30 + 5


@pytest.mark.parametrize("source", SOURCES)
def test_a_source_reads_a_directory_a_pattern_and_named_paths(
    spark: SparkSession, directory: Path, source: str
) -> None:
    by_name = json.dumps({"x": str(directory / "broker-a"), "y": str(directory / "broker-b")})
    for path in (str(directory), str(directory / "broker-?"), by_name):
        stores = json.loads(path) if path.startswith("{") else path
        read = spark.read.format(source).option("storePath", path)
        assert rows(read.load()) == scanned(stores)
        assert rows(read.option("topic", "orders").load()) == scanned(stores, "orders")
    offsets = {"orders": {"x": {"0": 145}}}
    some = read.option("topic", "orders").option("startingOffsets", json.dumps(offsets)).load()
    assert rows(some) == scanned(stores, "orders", start_offset={"x": {0: 145}})


@pytest.mark.parametrize("source", SOURCES)
def test_what_is_wrong_is_told_before_the_first_action(spark: SparkSession, directory: Path, source: str) -> None:
    for options, text in (
        ({"topic": "order"}, "unknown topic 'order'"),
        ({"brokerName": "x"}, r"option brokerName: expected none with the stores of \['broker-a'"),
        ({"commitLogDirs": "/x"}, "option commitLogDirs: expected none"),
        (
            {"topic": "orders", "startingOffsets": '{"orders": {"x": {"0": 1}}}'},
            r"startingOffsets: expected brokers of \['broker-a', 'broker-b', 'broker-c'\], got \['x'\]",
        ),
        ({"storePath": str(directory / "x*")}, "matches this pattern, got none"),
    ):
        read = spark.read.format(source).options(**{"storePath": str(directory)} | options)
        with pytest.raises(Exception, match=text):
            read.load().schema  # noqa: B018
    with pytest.raises(UnknownTopicError, match="order"):
        read_store(spark, directory, "order")
    with pytest.raises(ArgumentError, match="broker_name: expected none with several stores"):
        read_store(spark, directory, None, broker_name="x")
    with pytest.raises(ArgumentError, match="commit_log_dirs: expected directories by broker"):
        read_store(spark, directory, None, commit_log_dirs=["/x"])


def test_filters_and_counts_need_only_the_stores_that_they_ask_for(spark: SparkSession, directory: Path) -> None:
    frame = read_store(spark, directory, "orders", engine="columnar")
    of_one = frame.where("broker_name = 'broker-b'")
    assert "EqualTo(broker_name,broker-b)" in explained(of_one)
    assert of_one.rdd.getNumPartitions() == 1
    assert of_one.count() == 200
    assert frame.where("broker_name in ('broker-c', 'none')").count() == 0
    assert "stores of broker-a at " in explained(frame)
    assert frame.selectExpr("count(*)", "max(queue_offset)").first() == (350, 199)


def test_hosts_of_stores_are_asked_for_where_spark_can_be_asked(
    spark: SparkSession, directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hosts = {"broker-a": ["host-1"], "broker-b": ["host-2", "host-3"]}
    frame = read_store(spark, directory, None, engine="columnar", store_hosts=hosts)
    # PySpark does not show where a partition prefers to be
    scan: Any = frame._jdf.queryExecution().toRdd()  # noqa: SLF001
    while scan.dependencies().nonEmpty():
        scan = scan.dependencies().head().rdd()
    hosts_of = [scan.preferredLocations(part) for part in scan.partitions()]
    preferred = [[each.apply(number) for number in range(each.size())] for each in hosts_of]
    assert preferred == [["host-1"], ["host-2", "host-3"], []]
    caplog.set_level(logging.WARNING, "rmqfast.spark")
    assert read_store(spark, directory, None, engine="arrow", store_hosts=["host-1"]).count() == 540
    assert "store_hosts: expected engine columnar, got arrow" in caplog.text
    with pytest.raises(ArgumentError, match="store_hosts: expected names of broker-a, broker-b, broker-c, got 'x'"):
        read_store(spark, directory, None, store_hosts={"x": ["host-1"]})
    with pytest.raises(ArgumentError, match="store_hosts: expected names of hosts, got 'host-1'"):
        read_store(spark, directory / "broker-a", None, store_hosts="host-1")


def test_functions_and_tables_take_several_stores(spark: SparkSession, directory: Path, tmp_path: Path) -> None:
    def names(batches: Any) -> Any:
        for batch in batches:
            yield batch.select(["broker_name"])

    mapped = map_store(spark, directory, "orders", names, "broker_name string", columns=["broker_name"])
    assert {row["broker_name"]: row["count"] for row in mapped.groupBy("broker_name").count().collect()} == {
        "broker-a": 150,
        "broker-b": 200,
    }
    assert ingest(spark, directory, ["orders", "bills"], tmp_path / "out").rows == 540
    assert rows(spark.read.parquet(str(tmp_path / "out"))) == scanned(directory)


@pytest.mark.parametrize("engine", ENGINES)
def test_damage_is_named_by_its_broker(
    spark: SparkSession, directory: Path, tmp_path: Path, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(directory, copy)
    damage_second_record(copy / "broker-b")
    with pytest.raises(Exception, match=r"broker broker-b, store .*broker-b, commit log 0 to \d+: 1 damaged places"):
        read_store(spark, copy, None, engine=engine).collect()
    caplog.set_level(logging.WARNING, "rmqfast.spark")
    assert len(read_store(spark, copy, None, engine=engine, on_damage="warn").collect()) == 539


@pytest.mark.parametrize("source", SOURCES)
def test_a_stream_follows_all_stores_also_those_that_come_later(
    spark: SparkSession, directory: Path, tmp_path: Path, source: str
) -> None:
    brokers, out = tmp_path / "brokers", tmp_path / "out"
    shutil.copytree(directory, brokers)
    options = {"storePath": str(brokers), "startingOffsets": "earliest", "maxBytesPerTrigger": "60000"}

    def run() -> dict[str, Any]:
        """Reads what is there. Returns the offsets behind it, as the checkpoint has them."""
        stream = spark.readStream.format(source).options(**options).load()
        writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.format("parquet").trigger(availableNow=True).start(str(out)).awaitTermination()
        batches = [path for path in (tmp_path / "checkpoint" / "offsets").iterdir() if path.name.isdigit()]
        newest = max(batches, key=lambda path: int(path.name))
        offsets: dict[str, Any] = json.loads(newest.read_text(encoding="utf-8").splitlines()[-1])
        return offsets

    ends = run()
    assert list(ends) == ["broker-a", "broker-b", "broker-c"]
    fill(brokers / "broker-b", ("orders",), 30, start=200)
    fill(brokers / "broker-d", ("orders",), 25)
    assert list(run()) == ["broker-a", "broker-b", "broker-c", "broker-d"]
    # the store of a broker that is gone keeps its offset
    shutil.rmtree(brokers / "broker-c")
    fill(brokers / "broker-a", ("orders",), 10, start=300)
    assert run()["broker-c"] == ends["broker-c"]
    read = rows(spark.read.parquet(str(out)))
    shutil.copytree(directory / "broker-c", brokers / "broker-c")
    assert read == scanned(brokers)


@pytest.mark.parametrize("source", SOURCES)
def test_a_checkpoint_of_one_store_is_refused(
    spark: SparkSession, directory: Path, tmp_path: Path, source: str
) -> None:
    def run(path: Path) -> None:
        stream = spark.readStream.format(source).option("storePath", str(path)).option("startingOffsets", "earliest")
        writer = stream.load().writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.format("noop").trigger(availableNow=True).start().awaitTermination()

    run(directory / "broker-a")
    with pytest.raises(Exception, match=r'checkpoint: expected \{"broker-a": \{"log": 123\}\}, got'):
        run(directory)
