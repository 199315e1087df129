"""Spark reads the tables of `rmqfast ingest`, and both write to tables of `create_table`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rmqfast.errors import ArgumentError
from rmqfast.spark import create_table
from rmqfast.tables import ingest
from tests.golden_stores import PathOf
from tests.lakes.spark_lake import SparkLake, in_microseconds, rows_of
from tests.tables.stored_rows import Row, append, scanned

pytestmark = pytest.mark.spark


def shared(lake: SparkLake, table: str = "messages") -> tuple[str, dict[str, Any]]:
    """The name of a table in Spark, and the arguments of an ingest that writes to it."""
    if lake.format == "delta":
        return lake.name(table), {"out": str(lake.directory / table), "format": "delta"}
    conf = lake.spark.conf
    warehouse = conf.get("spark.sql.catalog.sql.warehouse")
    uri = str(conf.get("spark.sql.catalog.sql.uri")).removeprefix("jdbc:sqlite:")
    options = {"type": "sql", "uri": f"sqlite:///{uri}", "warehouse": f"file://{warehouse}"}
    name = f"{lake.directory.name}.{table}"
    lake.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS sql.`{lake.directory.name}`")
    arguments = {"out": name, "format": "iceberg", "catalog": "sql", "options": options}
    return f"sql.`{lake.directory.name}`.{table}", arguments


def read(lake: SparkLake, table: str) -> list[Row]:
    """All rows of a table. Spark keeps what it knows of an Iceberg table for half a minute."""
    if lake.format == "iceberg":
        lake.spark.sql(f"REFRESH TABLE {table}")
    return rows_of(lake.spark.table(table))


@pytest.mark.parametrize("name", ["basic-4.9.4", "delaytx-5.3.3"])
def test_spark_reads_what_an_ingest_wrote(golden_store: PathOf, lake: SparkLake, name: str) -> None:
    store = golden_store(name)
    table, arguments = shared(lake)
    ingest(store, **arguments)
    assert read(lake, table) == in_microseconds(scanned(store))


def test_spark_reads_parquet_of_an_ingest(golden_store: PathOf, lake: SparkLake) -> None:
    store = golden_store("basic-4.9.4")
    ingest(store, str(lake.directory / "parquet"))
    assert rows_of(lake.spark.read.parquet(str(lake.directory / "parquet"))) == in_microseconds(scanned(store))


def test_an_ingest_goes_on_in_a_table_that_spark_created(lake: SparkLake, tmp_path: Path) -> None:
    append(tmp_path / "store", 100)
    table, arguments = shared(lake)
    create_table(lake.spark, table)
    for more in (0, 50, 0):
        if more:
            append(tmp_path / "store", more, start=100)
        ingest(tmp_path / "store", **arguments)
        assert read(lake, table) == in_microseconds(scanned(tmp_path / "store"))


def test_an_ingest_refuses_a_table_that_a_stream_has_filled(lake: SparkLake, tmp_path: Path) -> None:
    append(tmp_path / "store", 10)
    table, arguments = shared(lake)
    rows = lake.stream_of(tmp_path / "store")
    create_table(lake.spark, table, rows)
    writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    if lake.format == "delta":
        writer.format("delta").start(arguments["out"]).awaitTermination()
    else:
        writer.toTable(table).awaitTermination()
    with pytest.raises(ArgumentError, match="which others have written"):
        ingest(tmp_path / "store", **arguments)


def test_an_ingest_goes_on_behind_an_optimize_of_spark(lake: SparkLake, tmp_path: Path) -> None:
    table, arguments = shared(lake)
    for start in (0, 50, 100):
        append(tmp_path / "store", 50, start=start)
        ingest(tmp_path / "store", **arguments)
    name = table.removeprefix("sql.")
    compact = {"delta": f"OPTIMIZE {table}", "iceberg": f"CALL sql.system.rewrite_data_files('{name}')"}
    lake.spark.sql(compact[lake.format]).collect()
    append(tmp_path / "store", 50, start=150)
    assert ingest(tmp_path / "store", **arguments).rows == 50
    assert read(lake, table) == in_microseconds(scanned(tmp_path / "store"))
