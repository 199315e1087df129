"""`create_table` makes tables with the columns of messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmqfast.errors import ArgumentError
from rmqfast.spark import create_table
from rmqfast.spark.schema import row_schema
from rmqfast.spark.table_formats import TableFormat
from tests.lakes.spark_lake import SparkLake
from tests.tables.stored_rows import append

pytestmark = [pytest.mark.spark, pytest.mark.old_spark]


def test_a_table_has_all_columns_or_those_of_a_frame(lake: SparkLake, tmp_path: Path) -> None:
    append(tmp_path / "store", 1)
    create_table(lake.spark, lake.name("all"))
    assert lake.read("all").drop("day").schema.names == row_schema().names
    decoded = lake.stream_of(tmp_path / "store", decode="json", valueSchema="amount double")
    create_table(lake.spark, lake.name("few"), decoded.select("topic", "value"), partition=["topic"])
    assert lake.read("few").dtypes == [("topic", "string"), ("value", "struct<amount:double>")]


def test_a_table_that_exists_is_left_alone(lake: SparkLake) -> None:
    create_table(lake.spark, lake.name(), partition=[])
    with pytest.raises(ArgumentError, match="expected no table of this name; exist_ok=True leaves it"):
        create_table(lake.spark, lake.name())
    create_table(lake.spark, lake.name(), partition=["tags"], exist_ok=True)
    assert "day" not in lake.read().columns


def test_properties_come_beside_ours(lake: SparkLake) -> None:
    properties = {"owner.team": "shop", "write.distribution-mode": "hash"}
    create_table(lake.spark, lake.name(), properties=properties)
    held = {row["key"]: row["value"] for row in lake.spark.sql(f"SHOW TBLPROPERTIES {lake.name()}").collect()}
    assert held.items() >= properties.items()
    assert (held.get("write.spark.fanout.enabled") == "true") == (lake.format == "iceberg")


@pytest.mark.parametrize(
    ("partition", "said"),
    [
        (["hour"], "expected some of day, topic, broker_name, queue_id, tags, got 'hour'"),
        (["day", "tags"], "expected columns for its partitions, got none named store_timestamp, tags"),
        ("day", "expected a list of names"),
    ],
)
def test_partitions_are_checked(lake: SparkLake, partition: list[str], said: str) -> None:
    rows = lake.spark.createDataFrame([], "topic string, body binary")
    with pytest.raises(ArgumentError, match=said):
        create_table(lake.spark, lake.name(), rows, partition=partition)


def test_a_format_is_that_of_the_catalog_or_is_told(lake: SparkLake) -> None:
    own: TableFormat = "delta" if lake.format == "delta" else "iceberg"
    with pytest.raises(ArgumentError, match="tables: expected some of delta, iceberg, got 'hudi'"):
        create_table(lake.spark, lake.name(), format="hudi")  # type: ignore[arg-type]
    lake.spark.conf.set("spark.sql.catalog.shop", "com.example.Catalog")
    with pytest.raises(ArgumentError, match=r"expected delta or iceberg for shop\.db\.orders"):
        create_table(lake.spark, "shop.db.orders")
    create_table(lake.spark, lake.name(), format=own)
