"""Tables that Spark writes: where they are, and how tests write and read them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

import rmqfast.spark
from rmqfast.errors import ArgumentError
from rmqfast.spark.table_formats import FORMATS, TableFormat, package_of
from tests.spark.cluster import ALONE, Settings
from tests.tables.stored_rows import Row, by_place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

#: A catalog of Iceberg that pyiceberg shares.
SQLITE = "org.xerial:sqlite-jdbc:3.50.3.0"


def formats_of_this_spark() -> list[TableFormat]:
    """The formats that have a release for this Spark."""
    found: list[TableFormat] = []
    for name in FORMATS:
        try:
            package_of(name, pyspark.__version__)
        except ArgumentError:
            continue
        found.append(name)
    return found


def start_session(directory: Path) -> SparkSession:
    """A session with all formats that this Spark has. Iceberg's catalog `ice` is in a directory, `sql` in a file."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings: Settings = {
        # as of all tests of Spark: a session lives for a minute
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "2",
        # of each replay of a log
        "spark.databricks.delta.snapshotPartitions": "1",
        # days must not depend on it
        "spark.sql.session.timeZone": "Asia/Shanghai",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.jars.packages": SQLITE,
    }
    catalogs = {
        "ice": {"type": "hadoop", "warehouse": str(directory / "ice")},
        "sql": {
            "type": "jdbc",
            "uri": f"jdbc:sqlite:{directory / 'catalog.db'}",
            "jdbc.schema-version": "V1",
            "warehouse": str(directory / "sql"),
        },
    }
    if "iceberg" in formats_of_this_spark():
        for name, options in catalogs.items():
            settings[f"spark.sql.catalog.{name}"] = "org.apache.iceberg.spark.SparkCatalog"
            settings |= {f"spark.sql.catalog.{name}.{key}": value for key, value in options.items()}
    builder = SparkSession.Builder().master("local[2]").config(map=ALONE | settings)
    session = rmqfast.spark.configure(builder, tables=formats_of_this_spark()).getOrCreate()
    session.sparkContext.setLogLevel("FATAL")
    return session


@dataclass(frozen=True)
class SparkLake:
    """A place for tables of one format: `delta`, `iceberg`, or `parquet`, which are directories."""

    spark: SparkSession
    directory: Path
    format: str

    def name(self, table: str = "messages") -> str:
        """The name of a table in SQL."""
        if self.format == "iceberg":
            return f"ice.`{self.directory.name}`.{table}"
        return f"{self.format}.`{self.directory / table}`"

    def create(self, rows: DataFrame | None = None, *, table: str = "messages", exist_ok: bool = False) -> None:
        if self.format != "parquet":
            rmqfast.spark.create_table(self.spark, self.name(table), rows, exist_ok=exist_ok)

    def stream_of(self, store: Path, **options: object) -> DataFrame:
        """A stream of a store, from its first message."""
        texts = {name: str(value) for name, value in options.items()}
        reader = self.spark.readStream.format("rocketmq-columnar").options(startingOffsets="earliest", **texts)
        return reader.option("storePath", str(store)).load()

    def start(self, writer: DataStreamWriter, *, table: str = "messages", checkpoint: str = "checkpoint") -> None:
        """Writes what there is, up to the end."""
        writer = writer.option("checkpointLocation", str(self.directory / checkpoint)).trigger(availableNow=True)
        if self.format == "iceberg":
            query = writer.toTable(self.name(table))
        else:
            writer = writer.partitionBy("topic") if self.format == "parquet" else writer
            query = writer.format(self.format).start(str(self.directory / table))
        query.awaitTermination()

    def read(self, table: str = "messages") -> DataFrame:
        # the catalog keeps a table for half a minute, which another process may have changed
        if self.format == "iceberg":
            self.spark.sql(f"REFRESH TABLE {self.name(table)}")
        return self.spark.table(self.name(table))

    def files(self, table: str = "messages") -> int:
        """The number of files that the table has now."""
        if self.format == "iceberg":
            return self.spark.table(f"{self.name(table)}.files").count()
        return len(self.read(table).inputFiles())

    def rows(self, table: str = "messages") -> list[Row]:
        """All rows by their place, as a scan has them."""
        return rows_of(self.read(table))


def rows_of(frame: DataFrame) -> list[Row]:
    """The rows of a table by their place, as a scan has them."""
    return by_place([_as_scanned(row.asDict(recursive=True)) for row in _readable(frame).collect()])


def _readable(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    # PySpark gives times in the time zone of the process
    for name in ("born_timestamp", "store_timestamp"):
        if name in frame.columns:
            frame = frame.withColumn(name, f.expr(f"unix_micros({name})"))
    return frame.drop("day")


def _as_scanned(row: Row) -> Row:
    for name in ("body", "raw"):
        if isinstance(row.get(name), bytearray):
            row[name] = bytes(row[name])
    if row["properties"] is not None:
        row["properties"] = list(row["properties"].items())
    return row


def in_microseconds(rows: Sequence[Row]) -> list[Row]:
    """The rows of a scan with times as `rows_of` has them."""
    from datetime import UTC, datetime, timedelta

    epoch, one = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
    times = ("born_timestamp", "store_timestamp")
    return [row | {name: (row[name] - epoch) // one for name in times if name in row} for row in rows]
