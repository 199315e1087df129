"""A scan in the libraries that read Arrow streams: the same rows in each."""

from __future__ import annotations

import duckdb
import polars as pl
import pyarrow as pa

import rmqfast
from tests.golden_stores import PathOf

COLUMNS = ["queue_offset", "tags", "body", "store_timestamp"]


def scan(golden_store: PathOf) -> rmqfast.Scan:
    return rmqfast.open_store(golden_store("basic-4.9.4")).scan("fx_q1", columns=COLUMNS)


def test_polars_reads_what_pyarrow_reads(golden_store: PathOf) -> None:
    frame = scan(golden_store).to_polars()
    assert isinstance(frame, pl.DataFrame)
    assert frame.to_dicts() == scan(golden_store).to_arrow().to_pylist()


def test_pandas_reads_what_pyarrow_reads(golden_store: PathOf) -> None:
    frame = scan(golden_store).to_pandas()
    assert frame["body"].tolist() == scan(golden_store).to_arrow()["body"].to_pylist()


def test_duckdb_queries_the_stream(golden_store: PathOf) -> None:
    stream = pa.RecordBatchReader.from_stream(scan(golden_store))
    connection = duckdb.connect()
    connection.register("messages", stream)
    [found] = connection.execute("SELECT count(*), max(queue_offset) FROM messages").fetchall()
    table = scan(golden_store).to_arrow()
    assert found == (table.num_rows, max(table["queue_offset"].to_pylist()))


def test_each_reading_of_a_scan_starts_anew(golden_store: PathOf) -> None:
    messages = scan(golden_store)
    connection = duckdb.connect()
    next(messages.batches())  # a reading that is given up
    assert connection.execute("SELECT queue_offset FROM messages LIMIT 1").fetchall()
    for _ in range(2):
        assert connection.execute("SELECT count(*) FROM messages").fetchall() == [(1259,)]
        assert len(messages.to_pandas()) == len(messages.to_polars()) == messages.to_arrow().num_rows == 1259
