"""Queries over a topic as a table, in one warm Python process; run as a program, it is the peer's child."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import polars as pl

import arrow_rows
from data import TAG, TOPIC, Dataset
from peer import Answer, serve, timed
from rows import drain, rmqfast

COLUMNS = ["queue_offset", "keys"]
SELECTED = f"SELECT {', '.join(COLUMNS)} FROM messages WHERE tags = '{TAG}'"  # noqa: S608 - the names above
GROUPED = "SELECT tags, count(*) FROM messages GROUP BY tags"
THREADS = 2


def by_hand(path: str, rows: str) -> Answer:
    """Two columns of one tag, by a scan whose arguments say so."""
    with rmqfast().open_store(path) as store:
        return filtered(lambda: drain(store.scan(TOPIC, columns=COLUMNS, tags=TAG)), rows)


def by_duckdb(path: str, rows: str) -> Answer:
    """The same by SQL."""
    with rmqfast().open_store(path) as store, duckdb.connect() as connection:
        connection.register("messages", store.table(TOPIC))
        return filtered(lambda: len(connection.sql(SELECTED).to_arrow_table()), rows)


def by_polars(path: str, rows: str) -> Answer:
    """The same by a lazy frame."""
    with rmqfast().open_store(path) as store:
        frame = store.scan(TOPIC).lazy().filter(pl.col("tags") == TAG).select(COLUMNS)
        return filtered(lambda: len(frame.collect()), rows)


def filtered(query: Callable[[], int], rows: str) -> Answer:
    """The rows that a query returns; `rows` is the number of messages that it has to look at."""
    return {**timed(lambda: {"returned": query()}), "rows": int(rows)}


def grouped(path: str) -> Answer:
    """Messages of each tag, over the table."""
    with rmqfast().open_store(path) as store, duckdb.connect(config={"threads": THREADS}) as connection:
        connection.register("messages", store.table(TOPIC, threads=THREADS))
        return counted(connection)


def grouped_parquet(label: str, body: str, rows: str) -> Answer:
    """The same over uncompressed Parquet, written before the clock starts."""
    files = arrow_rows.parquet_files(Dataset(label, int(body), int(rows)), 4)
    with duckdb.connect(config={"threads": THREADS}) as connection:
        connection.sql(f"CREATE VIEW messages AS FROM read_parquet('{files}/*.parquet')")
        return counted(connection)


def counted(connection: duckdb.DuckDBPyConnection) -> Answer:
    """The rows of all groups."""
    return timed(lambda: {"rows": sum(count for _, count in connection.execute(GROUPED).fetchall())})


def command() -> list[str]:
    """The command that starts this program."""
    return [sys.executable, str(Path(__file__).resolve())]


if __name__ == "__main__":
    asked = (by_hand, by_duckdb, by_polars, grouped, grouped_parquet)
    serve({function.__name__: function for function in asked})
