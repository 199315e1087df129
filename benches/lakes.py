"""Tables from a store, and of the same rows in memory, in a warm process; as a program, it is the peer's child."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from data import QUEUES, require_disk, scratch_dir
from peer import Answer, serve, timed
from rows import drain, rmqfast

BODY = 1024
MANY = 50
#: The batches of a store, kept between two requests.
_KEPT: dict[str, list[pa.RecordBatch]] = {}


def scan(path: str) -> Answer:
    """All columns of all messages, with the check of bodies that an ingest makes."""
    with rmqfast().open_store(path) as store:
        return timed(lambda: {"rows": drain(store.scan(verify_crc=True, batch_bytes=8 << 20))})


def ingest(path: str, form: str) -> Answer:
    """A whole store to a new table."""
    return timed(lambda: {"rows": ingested(path, form)})


def beyond_scan(path: str, form: str) -> Answer:
    """What an ingest costs beyond the scan of the same messages."""
    scanned, written = scan(path), ingest(path, form)
    return {**written, **{name: written[name] - scanned[name] for name in ("seconds", "cpu_seconds")}}


def from_memory(path: str, form: str) -> Answer:
    """The same batches, ready in memory, written by the library of the format."""
    batches = ready(path)
    write: dict[str, Callable[[list[pa.RecordBatch], Path], object]] = {
        "parquet": write_parquet,
        "delta": write_delta,
        "iceberg": write_iceberg,
    }
    directory = emptied("from-memory")
    return timed(
        lambda: {"rows": sum(batch.num_rows for batch in batches), "written": bool(write[form](batches, directory))}
    )


def row_groups(path: str) -> Answer:
    """MiB of a row group, of the topic whose row groups are the smallest."""
    ingested(path, "parquet")
    by_topic: dict[str, tuple[int, int]] = {}
    for file in (scratch_dir() / "ingest" / "table").rglob("*.parquet"):
        footer = pq.read_metadata(file)
        size = sum(footer.row_group(number).total_byte_size for number in range(footer.num_row_groups))
        before = by_topic.get(file.parent.name, (0, 0))
        by_topic[file.parent.name] = before[0] + size, before[1] + footer.num_row_groups
    size, count = min(by_topic.values(), key=lambda each: each[0] / each[1])
    return {"rows": size >> 20, "seconds": float(count), "topics": len(by_topic)}


def ready(path: str) -> list[pa.RecordBatch]:
    """All messages in memory, with the types that tables have."""
    if path not in _KEPT:
        from rmqfast.store import ScanRequest

        request = ScanRequest(microseconds=True, batch_bytes=8 << 20)
        with rmqfast().open_store(path) as store:
            pieces, _, _ = store.plan(request, cut_bytes=16 << 20)
            _KEPT[path] = list(store.scan_pieces(request, pieces).batches())
    return _KEPT[path]


def write_parquet(batches: list[pa.RecordBatch], directory: Path) -> bool:
    """One file, by pyarrow with its defaults."""
    with pq.ParquetWriter(directory / "rows.parquet", batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return True


def write_delta(batches: list[pa.RecordBatch], directory: Path) -> bool:
    """A Delta table, by deltalake."""
    from deltalake import write_deltalake

    write_deltalake(directory / "table", pa.RecordBatchReader.from_batches(batches[0].schema, batches))
    return True


def write_iceberg(batches: list[pa.RecordBatch], directory: Path) -> bool:
    """An Iceberg table, by pyiceberg, compressed as the others."""
    from pyiceberg.catalog import load_catalog

    catalog = load_catalog("default", **catalog_of(directory))
    catalog.create_namespace("db")
    properties = {"write.parquet.compression-codec": "snappy"}
    table = catalog.create_table("db.rows", schema=batches[0].schema, properties=properties)
    table.append(pa.Table.from_batches(batches))
    return True


def ingested(path: str, form: str) -> int:
    """Rows of a new table."""
    from rmqfast.tables import ingest as ingest_messages

    directory = emptied("ingest")
    options = catalog_of(directory) if form == "iceberg" else {}
    out = "db.rows" if form == "iceberg" else directory / "table"
    chosen: Any = form
    return ingest_messages(path, out, format=chosen, options=options).rows


def catalog_of(directory: Path) -> dict[str, str]:
    """A catalog of Iceberg in a file."""
    return {"type": "sql", "uri": f"sqlite:///{directory}/catalog.db", "warehouse": directory.as_uri()}


def emptied(name: str) -> Path:
    """An empty directory for tables."""
    directory = scratch_dir() / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory


def many_topics_store(package: Any, rows: int) -> Path:
    """The store of messages of fifty topics in turns, written if it is not there yet."""
    path = scratch_dir() / f"topics-{rows}"
    done = path.with_suffix(".done")
    if not done.exists():
        shutil.rmtree(path, ignore_errors=True)
        require_disk(2 * rows * BODY)
        body = bytes(range(256)) * (BODY // 256)
        with package.open_store(path, mode="a", flush="async") as store:
            for start in range(0, rows, 20_000):
                numbers = range(start, min(start + 20_000, rows))
                store.append_many(
                    package.Message(f"topic-{n % MANY:02}", b"%08d" % n + body[8:], queue_id=n // MANY % QUEUES)
                    for n in numbers
                )
        done.touch()
    return path


def command() -> list[str]:
    """The command that starts this program."""
    return [sys.executable, str(Path(__file__).resolve())]


if __name__ == "__main__":
    asked = (scan, ingest, beyond_scan, from_memory, row_groups)
    serve({function.__name__: function for function in asked})
