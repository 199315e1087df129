"""Decoded bodies are columns of tables, to which fields can be added."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pytest

import rmqfast
from rmqfast import Message
from rmqfast.errors import ArgumentError
from tests.tables.lakes import Lake
from tests.tables.stored_rows import SMALL

SCHEMA = "id bigint, lines array<struct<n: smallint>>"
WIDER = "id bigint, lines array<struct<n: smallint, price: decimal(10, 2)>>, at timestamp, note string"
BODY = b'{"id": %d, "lines": [{"n": %d, "price": "1.50"}], "at": "2026-11-28T01:02:03.456Z", "note": "x"}'


def append(path: Path, count: int, start: int = 0) -> None:
    with rmqfast.open_store(path, mode="a", options=SMALL) as store:
        for number in range(start, start + count):
            store.append(Message("orders", BODY % (number, number % 7)))


def values(lake: Lake) -> list[Any]:
    """The decoded bodies in the order of the log, as the library of the format reads them."""
    if lake.format == "parquet":
        files = duckdb.read_parquet(f"{lake.out()}/*/*/*.parquet", union_by_name=True)
        return [row[0] for row in files.order("physical_offset").select("value").fetchall()]
    rows = lake.read().to_pylist()
    return [row["value"] for row in sorted(rows, key=itemgetter("physical_offset"))]


def test_values_are_those_of_a_scan(tmp_path: Path, lake: Lake) -> None:
    append(tmp_path / "store", 50)
    lake.ingest(tmp_path / "store", decode="json", schema=WIDER)
    read = values(lake)
    assert len(read) == 50
    first = read[0]
    assert (first["id"], str(first["lines"][0]["price"]), first["lines"][0]["n"]) == (0, "1.50", 0)
    assert first["at"].timestamp() == 1795827723.456


def test_an_added_field_is_null_in_older_rows(tmp_path: Path, lake: Lake) -> None:
    store = tmp_path / "store"
    append(store, 20)
    lake.ingest(store)
    append(store, 20, start=20)
    lake.ingest(store, decode="json", schema=SCHEMA)
    append(store, 20, start=40)
    lake.ingest(store, decode="json", schema=WIDER)
    assert lake.ingest(store, decode="json", schema=WIDER).commits == 0
    read = values(lake)
    assert read[:20] == [None] * 20
    assert [value["id"] for value in read[20:]] == list(range(20, 60))
    assert {value["note"] for value in read[20:40]} == {None}
    assert {value["lines"][0].get("price") for value in read[20:40]} == {None}
    assert {str(value["lines"][0]["price"]) for value in read[40:]} == {"1.50"}
    assert {value["note"] for value in read[40:]} == {"x"}


def test_fewer_fields_or_other_types_are_refused(tmp_path: Path, lake: Lake) -> None:
    if lake.format == "parquet":
        pytest.skip("files of a directory have no common schema")
    store = tmp_path / "store"
    append(store, 20)
    lake.ingest(store, decode="json", schema=WIDER)
    with pytest.raises(
        ArgumentError, match=r"got none of value\.lines\.element\.price, value\.at, value\.note: decode"
    ):
        lake.ingest(store, decode="json", schema=SCHEMA)
    with pytest.raises(ArgumentError, match=r"got none of value\.id"):
        lake.ingest(store)
    other = WIDER.replace("id bigint", "id string")
    with pytest.raises(ArgumentError, match=r"expected value\.id as string, got int64: write to another table"):
        lake.ingest(store, decode="json", schema=other)


def test_a_refused_ingest_adds_no_fields(tmp_path: Path, lake: Lake) -> None:
    if lake.format == "parquet":
        pytest.skip("files of a directory have no common schema")
    store = tmp_path / "store"
    append(store, 20)
    lake.ingest(store, decode="json", schema=SCHEMA)
    before = lake.read().schema
    with pytest.raises(ArgumentError, match="was begun"):
        lake.ingest(store, tags="a", decode="json", schema=WIDER)
    assert lake.read().schema == before


def test_an_evolved_delta_table_is_still_one_ingest_s(tmp_path: Path) -> None:
    lake, store = Lake(tmp_path / "lake", "delta"), tmp_path / "store"
    append(store, 20)
    lake.ingest(store)
    lake.ingest(store, decode="json", schema=SCHEMA)
    append(store, 20, start=20)
    assert lake.ingest(store, decode="json", schema=SCHEMA).rows == 20
    assert len(lake.rows()) == 40
    operations = [entry["operation"] for entry in deltalake.DeltaTable(lake.out()).history()]
    assert operations == ["WRITE", "WRITE", "WRITE", "CREATE TABLE"]
