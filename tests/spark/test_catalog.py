"""A catalog of Spark whose tables are topics, of a store or of a live cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rmqfast
from rmqfast import EmbeddedCluster
from rmqfast.spark.schema import row_schema
from tests.spark.live import topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

CATALOG = "org.rmqfast.spark.RocketMQCatalog"
COUNT = 60
VERSION = json.dumps(
    {"orders": {"broker-a": {"0": 5, "1": 0, "2": 0, "3": 0}, "broker-b": {"0": 2, "1": 0, "2": 0, "3": 0}}}
)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("catalog") / "store"


@pytest.fixture(scope="module")
def cluster(directory: Path) -> Iterator[EmbeddedCluster]:
    """A broker with `orders`, and an empty topic."""
    with topics.cluster_in(directory, brokers=1) as started:
        topics.create(started, "orders", queues=2)
        topics.create(started, "refunds-eu", queues=1)
        topics.send(started, COUNT)
        yield started


@pytest.fixture(scope="module", params=["cluster", "store"])
def catalog(spark: SparkSession, cluster: EmbeddedCluster, directory: Path, request: pytest.FixtureRequest) -> str:
    """The name of a catalog with these topics."""
    place = {"nameServer": cluster.name_server} if request.param == "cluster" else {"storePath": str(directory)}
    return catalog_of(spark, f"of_{request.param}", **place)


def catalog_of(spark: SparkSession, name: str, **options: str) -> str:
    spark.conf.set(f"spark.sql.catalog.{name}", CATALOG)
    for key, value in options.items():
        spark.conf.set(f"spark.sql.catalog.{name}.{key}", value)
    return name


def offsets(frame: DataFrame) -> list[tuple[int, int]]:
    return sorted((row["queue_id"], row["queue_offset"]) for row in frame.select("queue_id", "queue_offset").collect())


def test_topics_are_listed_and_described(spark: SparkSession, catalog: str) -> None:
    names = {row["tableName"] for row in spark.sql(f"SHOW TABLES IN {catalog}").collect()}
    assert names == ({"orders", "refunds-eu"} if catalog == "of_cluster" else {"orders"})
    described = {row["col_name"]: row["data_type"] for row in spark.sql(f"DESCRIBE {catalog}.orders").collect()}
    wanted = {field.name: field.dataType.simpleString() for field in row_schema().fields}
    assert wanted.items() <= described.items()
    more = {row["col_name"]: row["data_type"] for row in spark.sql(f"DESCRIBE EXTENDED {catalog}.orders").collect()}
    assert "topic=orders" in more["Table Properties"]


def test_a_topic_is_read_by_its_name(spark: SparkSession, catalog: str) -> None:
    assert spark.table(f"{catalog}.orders").count() == COUNT
    rows = spark.sql(f"SELECT * FROM {catalog}.orders WHERE tags = 'paid' AND queue_offset < 5")  # noqa: S608
    assert {row["tags"] for row in rows.collect()} == {"paid"}
    assert "PushedFilters: [" in plan_of(rows)
    assert "topic orders" in plan_of(rows)


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().toString())  # noqa: SLF001


def test_an_unknown_topic_is_no_table(spark: SparkSession, catalog: str) -> None:
    assert not spark.catalog.tableExists(f"{catalog}.order")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table(f"{catalog}.order")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table(f"{catalog}.shop.orders")


def test_a_table_is_read_as_it_was(spark: SparkSession, catalog: str) -> None:
    table = f"{catalog}.orders"
    version = json.dumps({"orders": {"*": {"0": 3, "1": 2}}})
    at = spark.sql(f"SELECT * FROM {table} VERSION AS OF '{version}'")  # noqa: S608
    assert offsets(at) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    # times of messages are whole milliseconds
    rows = spark.table(table).selectExpr("unix_millis(store_timestamp) AS stored", "queue_id", "queue_offset").collect()
    middle = sorted(row["stored"] for row in rows)[COUNT // 2]
    text = datetime.fromtimestamp(middle / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    before = spark.sql(f"SELECT * FROM {table} TIMESTAMP AS OF '{text}'")  # noqa: S608
    wanted = sorted((row["queue_id"], row["queue_offset"]) for row in rows if row["stored"] <= middle)
    assert 0 < len(wanted) < COUNT
    assert offsets(before) == wanted


def test_a_stream_begins_where_its_options_say(spark: SparkSession, catalog: str, tmp_path: Path) -> None:
    stream = spark.readStream.option("startingOffsets", "earliest").table(f"{catalog}.orders")
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    writer.format("parquet").start(str(tmp_path / "out")).awaitTermination()
    assert spark.read.parquet(str(tmp_path / "out")).count() == COUNT


def test_options_of_a_query_come_before_those_of_the_catalog(spark: SparkSession, catalog: str) -> None:
    read = spark.read.option("tags", "paid").table(f"{catalog}.orders")
    assert {row["tags"] for row in read.collect()} == {"paid"}
    with pytest.raises(Exception, match="ArgumentError: unknown option tgs; did you mean tags"):
        spark.read.option("tgs", "paid").table(f"{catalog}.orders").collect()


def test_columns_that_a_table_leaves_out_are_hidden_and_there(spark: SparkSession, cluster: EmbeddedCluster) -> None:
    name = catalog_of(spark, "few", nameServer=cluster.name_server, columns="tags,body")
    table = spark.table(f"{name}.orders")
    assert table.columns == ["tags", "body"]
    assert offsets(table) == offsets(spark.table(f"{name}.orders"))
    assert len(offsets(table.where("queue_offset < 3"))) == 6
    described = spark.sql(f"DESCRIBE EXTENDED {name}.orders").collect()
    assert "store_timestamp" in {row["col_name"] for row in described}


def test_insert_sends_messages(spark: SparkSession, cluster: EmbeddedCluster) -> None:
    name = catalog_of(spark, "sent", nameServer=cluster.name_server, startingOffsets="earliest", batchSize="10")
    spark.sql(f"INSERT INTO {name}.`refunds-eu` SELECT 'paid' AS tags, binary(concat('n', id)) AS body FROM range(3)")  # noqa: S608
    with rmqfast.open_cluster(cluster.name_server) as held:
        rows = held.scan("refunds-eu", columns=["tags", "body"]).to_arrow().to_pylist()
    assert sorted(row["body"] for row in rows) == [b"n0", b"n1", b"n2"]
    assert {row["tags"] for row in rows} == {"paid"}


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("CREATE TABLE {table} (body binary)", "cannot create {table}: create topics by `rmqfast topic create`"),
        ("DROP TABLE {table}", "cannot drop {table}: delete topics by"),
        ("ALTER TABLE {table} ADD COLUMN x int", "cannot alter {table}: change topics by `rmqfast topic create`"),
    ],
)
def test_topics_are_not_changed_by_sql(
    spark: SparkSession, cluster: EmbeddedCluster, statement: str, said: str
) -> None:
    name = catalog_of(spark, "sent", nameServer=cluster.name_server)
    table = f"{name}.created" if statement.startswith("CREATE") else f"{name}.orders"
    with pytest.raises(Exception, match=said.format(table=table)):
        spark.sql(statement.format(table=table))


def test_the_topics_of_a_mirror_are_tables_with_and_without_its_cluster(spark: SparkSession, tmp_path: Path) -> None:
    with topics.live_cluster(tmp_path / "cluster") as live:
        pulled = spark.table(f"{catalog_of(spark, 'pulled', nameServer=live.name_server)}.orders")
        mirrored = {"nameServer": live.name_server, "via": "mirror", "mirrorPath": str(live.directory)}
        places = sorted(map(tuple, pulled.select("broker_name", "queue_id", "queue_offset").collect()))
        assert len({place[0] for place in places}) == 2
        # the directory of a cluster in this process has a store for each broker, as that of a mirror has
        for name, options in (("mirrored", mirrored), ("of_copies", {"storePath": str(live.directory)})):
            catalog = catalog_of(spark, name, **options)
            assert "orders" in {row["tableName"] for row in spark.sql(f"SHOW TABLES IN {catalog}").collect()}
            table = spark.table(f"{catalog}.orders")
            assert sorted(map(tuple, table.select("broker_name", "queue_id", "queue_offset").collect())) == places
            at = spark.sql(f"SELECT * FROM {catalog}.orders VERSION AS OF '{VERSION}'")  # noqa: S608
            assert sorted(map(tuple, at.select("broker_name", "queue_id", "queue_offset").collect())) == [
                place for place in places if place[1] == 0 and place[2] < (5 if place[0] == "broker-a" else 2)
            ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "catalog: expected the option nameServer, a live cluster, or storePath, store directories, got neither"),
        ({"storePath": "/s", "topic": "orders"}, "option topic: expected none in a catalog"),
        ({"storePath": "/nowhere", "tgs": "paid"}, "unknown option tgs"),
        ({"storePath": "/nowhere"}, "/nowhere"),
        ({"nameServer": "127.0.0.1:1"}, r"127\.0\.0\.1:1"),
    ],
)
def test_wrong_options_of_a_catalog_are_named(
    spark: SparkSession, options: dict[str, str], said: str, request: pytest.FixtureRequest
) -> None:
    name = catalog_of(spark, f"wrong_{abs(hash(request.node.name))}", **options)
    with pytest.raises(Exception, match=said):
        spark.sql(f"SHOW TABLES IN {name}").collect()
    with pytest.raises(Exception, match=said):
        spark.table(f"{name}.orders").collect()
