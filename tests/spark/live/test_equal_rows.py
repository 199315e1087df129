"""The same messages from the stores' directories and from the brokers are the same rows, column by column."""

from __future__ import annotations

import json
from collections.abc import Iterable
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

import pytest

from rmqfast._native import TopicRead
from rmqfast.spark import read_store, read_topic
from rmqfast.spark.reader import store_read
from rmqfast.store import COLUMNS
from tests.spark.conftest import Rows as RowsOf
from tests.spark.engines import JVM, PYTHON
from tests.spark.in_process import partition_rows, topic_rows
from tests.spark.live import topics
from tests.spark.live.topics import LiveCluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = list[dict[str, Any]]
PLACE = ("broker_name", "queue_id", "queue_offset")
OPTIONS = {"tags": "subExpression", "sql": "sql", "keys": "keys", "queue_ids": "queueIds"}
OPTIONS |= {
    "columns": "columns",
    "property_names": "propertyNames",
    "verify_crc": "verifyCrc",
    "start_time": "startingTimestamp",
    "end_time": "endingTimestamp",
    "as_of": "asOf",
}
OPTIONS |= {"start_offset": "startingOffsets", "end_offset": "endingOffsets", "on_damage": "failOnDataLoss"}
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
    "properties": {"property_names": ["region", "KEYS"], "tags": "paid"},
}


def rows_of(frame: DataFrame) -> Rows:
    return by_place(row.asDict() for row in frame.collect())


def options_of(arguments: dict[str, Any]) -> dict[str, str]:
    """The options that mean what arguments of `read_topic` mean."""
    return {OPTIONS[name]: text_of(name, value) for name, value in arguments.items()}


def text_of(name: str, value: Any) -> str:
    if name == "on_damage":
        return str(value == "fail")
    if isinstance(value, dict):
        return json.dumps({"orders": value})
    return str(value) if isinstance(value, str | int) else ",".join(map(str, value))


def topic_frame(
    spark: SparkSession, engine: str, name_server: str, topic: str = "orders", **arguments: Any
) -> DataFrame:
    """What `read_topic` gives, or the JVM's source by the options of the same meaning."""
    if engine == PYTHON:
        return read_topic(spark, name_server, topic, **arguments)
    options = {"nameServer": name_server, "topic": topic} | options_of(arguments)
    return spark.read.format(engine).options(**options).load()


def by_place(rows: Iterable[dict[str, Any]]) -> Rows:
    return sorted(rows, key=itemgetter(*PLACE))


def stored(spark: SparkSession, cluster: LiveCluster, **arguments: Any) -> DataFrame:
    frames = [
        read_store(spark, path, "orders", broker_name=name, engine="arrow", **arguments)
        for name, path in topics.stores(cluster.directory).items()
    ]
    return frames[0].unionByName(frames[1])


def stored_rows(cluster: LiveCluster, **arguments: Any) -> Rows:
    """The rows of the stores, read in this process."""
    reads = [
        store_read(path, "orders", broker_name=name, **arguments)
        for name, path in topics.stores(cluster.directory).items()
    ]
    return by_place(row for read in reads for row in partition_rows(read))


@pytest.mark.parametrize("arguments", BOTH.values(), ids=BOTH)
def test_options_choose_from_a_cluster_what_arguments_choose_from_its_stores(
    live_cluster: LiveCluster, arguments: dict[str, Any]
) -> None:
    options = {"nameServer": live_cluster.name_server, "topic": "orders"} | options_of(arguments)
    columns = arguments.get("columns", COLUMNS)
    rows = topic_rows(TopicRead("topic batch", options, columns))
    assert len(rows) > 50
    assert by_place(rows) == stored_rows(live_cluster, **arguments)
    assert list(rows[0]) == list(columns)


def test_each_column_by_itself_is_that_of_all(live_cluster: LiveCluster) -> None:
    """Answers are read without what no column asks for."""
    options = {"nameServer": live_cluster.name_server, "topic": "orders"}
    every = stored_rows(live_cluster)
    for column in COLUMNS:
        names = [*PLACE, *({column} - set(PLACE))]
        found = topic_rows(TopicRead("topic batch", options, names))
        assert by_place(found) == [{name: row[name] for name in names} for row in every], column


@pytest.mark.spark
@pytest.mark.old_spark
def test_each_column_by_itself_is_that_of_all_in_the_jvm(
    spark: SparkSession, live_cluster: LiveCluster, rows_of: RowsOf
) -> None:
    every, frame = stored_rows(live_cluster), topic_frame(spark, JVM, live_cluster.name_server)
    for column in COLUMNS:
        names = [*PLACE, *({column} - set(PLACE))]
        wanted = [{name: row[name] for name in names} for row in every]
        assert by_place(rows_of(frame.select(*names))) == wanted, column


@pytest.mark.spark
@pytest.mark.old_spark
@pytest.mark.parametrize("arguments", BOTH.values(), ids=BOTH)
def test_the_jvm_chooses_the_same(
    spark: SparkSession, live_cluster: LiveCluster, rows_of: RowsOf, arguments: dict[str, Any]
) -> None:
    frame = topic_frame(spark, JVM, live_cluster.name_server, **arguments)
    assert frame.columns == list(arguments.get("columns", COLUMNS))
    assert by_place(rows_of(frame)) == stored_rows(live_cluster, **arguments)


@pytest.mark.spark
@pytest.mark.old_spark
@pytest.mark.parametrize(
    ("engine", "name"), [("arrow", "all"), ("pandas", "all"), ("arrow", "sql and tags"), ("arrow", "keys and tags")]
)
def test_a_store_and_its_broker_give_the_same_rows(
    spark: SparkSession, live_cluster: LiveCluster, engine: Literal["arrow", "pandas"], name: str
) -> None:
    wanted = rows_of(stored(spark, live_cluster, **BOTH[name]))
    frame = read_topic(spark, live_cluster.name_server, "orders", engine=engine, **BOTH[name])
    assert frame.columns == list(COLUMNS)
    assert rows_of(frame) == wanted
    assert frame.count() == len(wanted) > 50


@pytest.mark.spark
@pytest.mark.old_spark
def test_times_are_exact_and_half_open(spark: SparkSession, engine: str, live_cluster: LiveCluster) -> None:
    times = sorted(row["store_timestamp"] for row in stored_rows(live_cluster, columns=[*PLACE, "store_timestamp"]))
    bounds = {"start_time": times[300], "end_time": times[900]}
    wanted = [row["store_timestamp"] for row in stored_rows(live_cluster, **bounds)]
    assert wanted == [time for time in wanted if times[300] <= time < times[900]]
    frame = topic_frame(spark, engine, live_cluster.name_server, **bounds)
    found = frame.selectExpr(*PLACE, "unix_millis(store_timestamp) AS store_timestamp")
    assert [row["store_timestamp"] for row in rows_of(found)] == wanted
    assert wanted
    frame = topic_frame(spark, engine, live_cluster.name_server, start_time=times[300], as_of=times[900] - 1)
    assert frame.count() == len(wanted)
