"""Reads the first rows of a store and ends: `python -m tests.store.first_rows PATH THREADS TIMES [READER]`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
from datafusion import SessionContext

import rmqfast
from rmqfast.store import Scan, scan_source

ROWS = 3


def by_duckdb(scan: Scan) -> int:
    connection = duckdb.connect()
    connection.register("t", scan.dataset())
    return len(connection.execute("from t limit 3").fetchall())


def by_duckdb_over_the_scan(scan: Scan) -> int:
    connection = duckdb.connect()
    connection.register("t", scan)
    return len(connection.execute("from t limit 3").fetchall())


def by_duckdb_cursor(scan: Scan) -> int:
    # the result is open when the process ends
    cursor = duckdb.connect()
    cursor.register("t", scan.dataset())
    return len(cursor.execute("select body from t where tags <> 't1'").fetchmany(ROWS))


def by_polars(scan: Scan) -> int:
    return len(scan.lazy().head(ROWS).collect())


def by_polars_with_a_filter(scan: Scan) -> int:
    return len(scan.lazy().filter(pl.col("flag") == 0).head(ROWS).collect(engine="streaming"))


def by_polars_over_the_dataset(scan: Scan) -> int:
    return len(pl.scan_pyarrow_dataset(scan.dataset()).head(ROWS).collect())


def by_datafusion(scan: Scan) -> int:
    context = SessionContext()
    context.register_dataset("t", scan.dataset())
    return len(context.sql("select * from t limit 3").to_arrow_table())


def by_datafusion_with_a_filter(scan: Scan) -> int:
    context = SessionContext()
    context.register_dataset("t", scan.dataset())
    return len(context.sql("select body from t where tags <> 't1' limit 3").to_arrow_table())


def by_datafusion_stream(scan: Scan) -> int:
    context = SessionContext()
    context.register_dataset("t", scan.dataset())
    # the stream is open when the process ends
    stream = context.sql("select * from t").execute_stream()
    return min(ROWS, len(next(iter(stream)).to_pyarrow()))


def by_pyarrow_scanner(scan: Scan) -> int:
    return int(scan.dataset().scanner(columns=["body", "tags"]).head(ROWS).num_rows)


def by_pyarrow_batches(scan: Scan) -> int:
    batches: Any = scan.dataset().to_batches(batch_size=100)
    return min(ROWS, int(next(batches).num_rows))


def by_dataset_head(scan: Scan) -> int:
    return int(scan.dataset().head(ROWS, filter=pc.field("tags") == "t1").num_rows)


def by_scan_head(scan: Scan) -> int:
    return int(scan.head(ROWS).num_rows)


def by_stream(scan: Scan) -> int:
    return min(ROWS, int(pa.RecordBatchReader.from_stream(scan).read_next_batch().num_rows))


def by_scanner_of_a_stream(scan: Scan) -> int:
    return int(pyarrow.dataset.Scanner.from_batches(scan).head(ROWS).num_rows)


def by_batches(scan: Scan) -> int:
    return min(ROWS, int(next(scan.batches()).num_rows))


READERS: dict[str, Callable[[Scan], int]] = {
    name.removeprefix("by_"): reader for name, reader in list(globals().items()) if name.startswith("by_")
}


def exit_codes(name: str, path: str, threads: int, times: int) -> Iterator[int]:
    """Yields the exit codes of children that read and end as an interpreter does. A negative one is a signal."""
    for _ in range(times):
        pid = os.fork()
        if pid == 0:
            # a child that hangs is ended by this signal
            signal.alarm(60)
            # several fragments, as a large store has
            scan_source._PIECE_BYTES = 1 << 20  # noqa: SLF001
            rows = READERS[name](rmqfast.open_store(path).scan("T", threads=threads, batch_rows=500))
            sys.exit(rows != ROWS)
        yield os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    path, threads, times, *names = sys.argv[1:]
    # one process for all, because imports take longer than the rows
    for reader in names or READERS:
        for code in exit_codes(reader, path, int(threads), int(times)):
            print(reader, code, flush=True)  # noqa: T201 - to the test
