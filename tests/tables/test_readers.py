"""Polars and DuckDB read a table as the library of its format does: the same values in the same types."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import rmqfast
from tests.golden_stores import PathOf
from tests.tables.lakes import Lake

STORE = "basic-4.9.4"
#: Columns that every reader has in the same type; `properties` is a list of structs in Polars.
COLUMNS = [name for name in rmqfast.store.COLUMNS if name != "properties"]


def by_polars(lake: Lake) -> pa.Table:
    out = lake.out()
    readers: dict[str, Callable[[], pl.LazyFrame]] = {
        "parquet": lambda: pl.scan_parquet(f"{out}/**/*.parquet", hive_partitioning=True),
        "delta": lambda: pl.scan_delta(out),
        "iceberg": lambda: pl.scan_iceberg(lake.catalog().load_table(out)),
    }
    return readers[lake.format]().collect().to_arrow()


def by_duckdb(lake: Lake) -> pa.Table:
    if lake.format == "parquet":
        table = duckdb.read_parquet(f"{lake.out()}/**/*.parquet", hive_partitioning=True)
    elif lake.format == "delta":
        import deltalake

        messages = deltalake.DeltaTable(lake.out()).to_pyarrow_dataset()
        table = duckdb.from_arrow(messages)
    else:
        connection = lake.catalog().load_table(lake.out()).scan().to_duckdb("messages")
        table = connection.table("messages")
    return table.to_arrow_table()


@pytest.mark.filterwarnings("ignore:Iceberg scan planning")
@pytest.mark.parametrize("read", [by_polars, by_duckdb])
def test_values_and_types_are_those_of_a_scan(
    golden_store: PathOf, lake: Lake, read: Callable[[Lake], pa.Table]
) -> None:
    lake.ingest(golden_store(STORE))
    with rmqfast.open_store(golden_store(STORE)) as store:
        wanted = store.scan(columns=COLUMNS).to_arrow().sort_by("physical_offset")
    found = read(lake).select(COLUMNS).sort_by("physical_offset")
    for name in COLUMNS:
        type_ = wanted.schema.field(name).type
        if pa.types.is_timestamp(type_):
            assert pa.types.is_timestamp(found.schema.field(name).type)
            assert found.schema.field(name).type.tz in {"UTC", "Etc/UTC"}
        # microseconds to milliseconds loses nothing: the cast is a safe one
        assert found.column(name).cast(type_).to_pylist() == wanted.column(name).to_pylist(), name
