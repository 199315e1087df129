"""Tables of each format in a directory: how tests write them, and read them with the libraries themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.dataset as ds
from pyiceberg.catalog import Catalog, load_catalog

from rmqfast import MessageCluster
from rmqfast.store.report import Ingested
from rmqfast.tables import ingest
from rmqfast.tables.sources import Stores
from tests.tables.stored_rows import Row, by_place

FORMATS = ("parquet", "delta", "iceberg")


@dataclass(frozen=True)
class Lake:
    """A place for tables of one format."""

    directory: Path
    format: str

    @property
    def options(self) -> dict[str, str]:
        """The arguments `options` of an ingest."""
        if self.format != "iceberg":
            return {}
        self.directory.mkdir(exist_ok=True)
        catalog = self.directory / "catalog.db"
        return {"type": "sql", "uri": f"sqlite:///{catalog}", "warehouse": self.directory.as_uri()}

    def out(self, table: str = "messages") -> str:
        """The argument `out` of an ingest."""
        return f"db.{table}" if self.format == "iceberg" else str(self.directory / table)

    def ingest(
        self,
        source: Stores | MessageCluster,
        topics: Sequence[str] | None = None,
        *,
        table: str = "messages",
        **arguments: Any,
    ) -> Ingested:
        own: Any = {"format": self.format, "options": self.options}
        return ingest(source, self.out(table), topics, **own, **arguments)

    def catalog(self) -> Catalog:
        return load_catalog("default", **self.options)

    def read(self, table: str = "messages") -> pa.Table:
        """All rows, as the library of the format reads them."""
        out = self.out(table)
        if self.format == "parquet":
            return ds.dataset(out, format="parquet", partitioning="hive").to_table()
        if self.format == "delta":
            return deltalake.DeltaTable(out).to_pyarrow_table()
        return self.catalog().load_table(out).scan().to_arrow()

    def rows(self, table: str = "messages") -> list[Row]:
        """All rows by their place, without the partition `day`."""
        read = self.read(table)
        return by_place(read.select([name for name in read.column_names if name != "day"]).to_pylist())
