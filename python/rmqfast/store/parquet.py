"""Writes messages to Parquet files by day and topic. The layout is that of Spark's `partitionBy`, without Spark.

Source: Spark's `DataFrameWriter`, `ExternalCatalogUtils`.
"""

from __future__ import annotations

import os
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from queue import LifoQueue
from typing import Literal, NamedTuple

from rmqfast.arguments import suggests_names
from rmqfast.errors import ArgumentError, CorruptError, DamageWarning
from rmqfast.extras import import_extra
from rmqfast.message import Damage
from rmqfast.paths import local_path
from rmqfast.store.new_directory import Mode, new_directory
from rmqfast.store.partition_files import PartitionFiles
from rmqfast.store.reader import MessageStore
from rmqfast.store.report import Ingested
from rmqfast.store.request import ScanArguments, ScanRequest, Time
from rmqfast.store.scan import Scan
from rmqfast.system import usable_cores

#: Bytes of the log that a thread reads before it writes them; it needs a few times as much memory.
PIECE_BYTES = 16 << 20
PIECE_ROWS = 1 << 20
MOST_THREADS = 8
#: Maximum number of open files of all threads.
MOST_OPEN = 512
MOST_LISTED = 20
#: The empty file that Spark writes last; later jobs may wait for it.
SUCCESS = "_SUCCESS"
Piece = tuple[str, int, int, bool]


class PieceResult(NamedTuple):
    rows: int
    bytes: int
    damage: list[Damage]


@suggests_names
def write_parquet(
    store: MessageStore,
    out: str | os.PathLike[str],
    topics: Sequence[str] | None = None,
    *,
    tags: str | Sequence[str] = "*",
    start_time: Time | None = None,
    end_time: Time | None = None,
    mode: Mode = "error",
    on_damage: Literal["fail", "warn"] = "fail",
    progress: Callable[[int, int], object] | None = None,
) -> Ingested:
    """Writes messages to Parquet as `out/day=2026-11-21/topic=orders/`. The day is the UTC day of `store_timestamp`.

    Columns, types and directory names are those of `rmqfast.spark.ingest`. Each thread writes its own files. All files
    are written below `out` + ".partial" and moved to `out` at the end.
    """
    import_extra("pyarrow", "arrow")
    target = _local(out)
    _check_apart(store.path, target, mode)
    started = time.monotonic()
    wanted: ScanArguments = {
        "tags": tags,
        "start_time": start_time,
        "end_time": end_time,
        "batch_rows": PIECE_ROWS,
        "batch_bytes": PIECE_BYTES,
    }
    one_or_more = topics[0] if topics and len(topics) == 1 else topics
    request = ScanRequest.of(one_or_more, wanted, broker_name=None, microseconds=True)
    pieces, _, _ = store.plan(request, cut_bytes=PIECE_BYTES, readers=_threads())
    position, total = 0, sum(end - start for _, start, end, _ in pieces)
    rows, size, damage = 0, 0, set[Damage]()
    report = progress or (lambda *_: None)
    report(position, total)
    with new_directory(target, mode) as directory, warnings.catch_warnings():
        # all damage is reported at the end
        warnings.simplefilter("ignore", DamageWarning)
        with _piece_results(store, request, pieces, directory) as results:
            for (_, start, end, _), result in zip(pieces, results, strict=True):
                # the exception also removes the new directory
                if result.damage and on_damage == "fail":
                    raise CorruptError(_describe(store, result.damage))
                position, rows, size = position + end - start, rows + result.rows, size + result.bytes
                damage.update(result.damage)
                report(position, total)
        # last: the marker of a complete directory
        (directory / SUCCESS).touch()
    places = tuple(sorted(damage, key=lambda place: (place.file, place.offset)))
    return Ingested(rows=rows, bytes=size, seconds=time.monotonic() - started, damage=places)


@contextmanager
def _piece_results(
    store: MessageStore, request: ScanRequest, pieces: Sequence[Piece], directory: Path
) -> Iterator[Iterator[PieceResult]]:
    """Writes pieces in several threads. Yields their results in order."""
    threads, number, run = _threads(), count(), uuid.uuid4()

    def new_name() -> str:
        return f"part-{next(number):05}-{run}.snappy.parquet"

    # the next piece continues the files written last, so that a small store has one file per day and topic
    idle: LifoQueue[PartitionFiles] = LifoQueue()

    def write(piece: Piece) -> PieceResult:
        files = idle.get_nowait()
        try:
            return _write(store.scan_pieces(request, [piece]), files)
        finally:
            idle.put(files)

    with ExitStack() as stack:
        for _ in range(threads):
            idle.put(stack.enter_context(PartitionFiles(directory, new_name, most_open=MOST_OPEN // threads)))
        pool = ThreadPoolExecutor(threads, thread_name_prefix="rmqfast-parquet")
        # registered last, so that threads end before their files are closed
        stack.callback(pool.shutdown, cancel_futures=True)
        yield pool.map(write, pieces)


def _write(scan: Scan, files: PartitionFiles) -> PieceResult:
    import pyarrow.compute as pc

    rows, size = 0, 0
    for batch in scan.batches():
        # min_count: the sum of no rows is 0, not null
        rows, size = rows + batch.num_rows, size + pc.sum(batch.column("store_size"), min_count=0).as_py()
        files.write(batch)
    return PieceResult(rows, size, scan.damage)


def _threads() -> int:
    return min(usable_cores(), MOST_THREADS)


def _local(out: str | os.PathLike[str]) -> Path:
    try:
        return local_path(out, "out")
    except ArgumentError as error:
        error.add_note("rmqfast.spark.ingest, or `rmqfast ingest --engine spark`, writes to URLs that Spark knows")
        raise


def _check_apart(store: Path, out: Path, mode: Mode) -> None:
    store, out = store.resolve(), out.resolve()
    if out.is_relative_to(store):
        raise ArgumentError(f"out: expected a path outside of the store, got {out}")
    # overwriting would delete the store
    if mode == "overwrite" and store.is_relative_to(out):
        raise ArgumentError(f"out: expected a directory without the store, as it is replaced, got {out}")


def _describe(store: MessageStore, damage: Sequence[Damage]) -> str:
    places = [f"{d.file} at offset {d.offset}, {d.length} bytes: {d.reason}" for d in damage[:MOST_LISTED]]
    if len(damage) > MOST_LISTED:
        places.append(f"and {len(damage) - MOST_LISTED} more")
    text = f"store {store.path}: {len(damage)} damaged places: {'; '.join(places)}"
    return f'{text}; on_damage="warn" writes what is left'
