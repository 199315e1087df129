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
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from itertools import count, pairwise
from pathlib import Path
from queue import LifoQueue
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, Unpack, cast

from rmqfast.arguments import Time, suggests_names
from rmqfast.errors import ArgumentError, CorruptError, DamageWarning, DecodeWarning
from rmqfast.extras import import_extra
from rmqfast.message import BadBody, Damage
from rmqfast.paths import local_path
from rmqfast.store.decode import VALUE
from rmqfast.store.new_directory import Mode, new_directory
from rmqfast.store.reader import MessageStore
from rmqfast.store.report import Ingested
from rmqfast.store.request import DecodeArguments, ScanArguments, ScanRequest, check_names
from rmqfast.store.scan import Scan
from rmqfast.system import sync_file, usable_cores

if TYPE_CHECKING:
    import pyarrow as pa


#: Bytes after which a new file starts, because the metadata of all row groups stays in memory until the end.
FILE_BYTES = 1 << 30
#: Characters that Spark and Hive escape in directory names.
ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | frozenset(map(chr, range(0x20)))
#: The directory name of Spark and Hive for an empty value.
NOTHING = "__HIVE_DEFAULT_PARTITION__"


class PartitionFiles:
    """Writes batches to one Parquet file per day and topic. Each batch becomes a row group."""

    def __init__(self, directory: Path, new_name: Callable[[], str], *, most_open: int) -> None:
        self._directory = directory
        self._new_name = new_name
        self._most_open = most_open
        # in the order of the last write
        self._open: dict[str, _File] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # after an error the files are useless, but must be closed
        with nullcontext() if kind is None else suppress(OSError), ExitStack() as closing:
            for file in self._open.values():
                closing.callback(file.close)

    def write(self, batch: pa.RecordBatch) -> None:
        """Writes the rows of a batch. Rows of the same day and topic keep their order."""
        import pyarrow as pa
        import pyarrow.compute as pc

        # computed from the number: Arrow needs a time zone database even for UTC, which a container may lack
        stored = batch.column("store_timestamp")
        utc = stored.cast(pa.int64()).cast(pa.timestamp(stored.type.unit))
        # a string: a damaged record may have a day after the year 9999, which Python's dates do not have
        day = utc.cast(pa.date32()).cast(pa.string())
        keys = pa.RecordBatch.from_arrays([day, batch.column("topic")], ["day", "topic"])
        # a stable sort
        order = pc.sort_indices(keys, [("day", "ascending"), ("topic", "ascending")])
        keys = keys.take(order)
        rows = batch.select([name for name in batch.schema.names if name != "topic"]).take(order)
        # Table.group_by would import pyarrow.dataset and pandas, which takes longer than exporting a small store
        ends = {end for column in keys.columns for end in pc.run_end_encode(column).run_ends.to_pylist()}
        for start, end in pairwise([0, *sorted(ends)]):
            names = (_name(column[start].as_py()) for column in keys.columns)
            self._file("day={}/topic={}".format(*names), rows.schema).write(rows.slice(start, end - start))

    def _file(self, partition: str, schema: pa.Schema) -> _File:
        file = self._open.pop(partition, None)
        # the next batch starts a new file
        if file is not None and file.size >= FILE_BYTES:
            file.close()
            file = None
        if file is None:
            # closes the file that was not written to for the longest time
            if len(self._open) >= self._most_open:
                self._open.pop(next(iter(self._open))).close()
            path = self._directory / partition
            path.mkdir(parents=True, exist_ok=True)
            file = _File(path / self._new_name(), schema)
        # at the end: the dict is ordered by the last write
        self._open[partition] = file
        return file


class _File:
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self._path = path
        self._sink = pa.OSFile(str(path), "wb")
        self._writer = parquet.ParquetWriter(self._sink, schema)

    @property
    def size(self) -> int:
        # bytes written so far
        return int(self._sink.tell())

    def write(self, rows: pa.RecordBatch) -> None:
        self._writer.write_batch(rows)

    def close(self) -> None:
        """Finishes the file and flushes it to disk."""
        with self._sink:
            self._writer.close()
        with self._path.open("rb") as file:
            sync_file(file.fileno())


def _name(value: str | None) -> str:
    return "".join(f"%{ord(c):02X}" if c in ESCAPED else c for c in value) if value else NOTHING


#: Bytes of the log that a thread reads before it writes them; it needs a few times as much memory.
PIECE_BYTES = 16 << 20
PIECE_ROWS = 1 << 20
MOST_THREADS = 8
#: Maximum number of open files of all threads.
MOST_OPEN = 512
MOST_LISTED = 20
#: Maximum number of bad bodies that a report lists, as of a piece of a scan.
MOST_SAMPLED = 100
#: The empty file that Spark writes last; later jobs may wait for it.
SUCCESS = "_SUCCESS"
Piece = tuple[str, int, int, bool]


class PieceResult(NamedTuple):
    rows: int
    bytes: int
    damage: list[Damage]
    bad_bodies: int
    decode_errors: list[BadBody]


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
    **body: Unpack[DecodeArguments],
) -> Ingested:
    """Writes messages to Parquet as `out/day=2026-11-21/topic=orders/`. The day is the UTC day of `store_timestamp`.

    Columns, types and directory names are those of `rmqfast.spark.ingest`. Each thread writes its own files. All files
    are written below `out` + ".partial" and moved to `out` at the end.

    `body` holds the arguments of `rmqfast.store.DecodeArguments`: with `decode`, the files have the column `value`,
    too, in types that Spark has. `Ingested.bad_bodies` counts the bodies that could not be decoded.
    """
    check_names(body, DecodeArguments)
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
    wanted = cast("ScanArguments", {**wanted, **body})
    one_or_more = topics[0] if topics and len(topics) == 1 else topics
    request = ScanRequest.of(one_or_more, wanted, broker_name=None, microseconds=True)
    pieces, _, _ = store.plan(request, cut_bytes=PIECE_BYTES, readers=_threads())
    position, total = 0, sum(end - start for _, start, end, _ in pieces)
    rows, size, damage = 0, 0, set[Damage]()
    bad_bodies, decode_errors = 0, list[BadBody]()
    report = progress or (lambda *_: None)
    report(position, total)
    with new_directory(target, mode) as directory, warnings.catch_warnings():
        # all damage is reported at the end, and all bad bodies
        warnings.simplefilter("ignore", DamageWarning)
        warnings.simplefilter("ignore", DecodeWarning)
        with _piece_results(store, request, pieces, directory) as results:
            for (_, start, end, _), result in zip(pieces, results, strict=True):
                # the exception also removes the new directory
                if result.damage and on_damage == "fail":
                    raise CorruptError(_describe(store, result.damage))
                position, rows, size = position + end - start, rows + result.rows, size + result.bytes
                damage.update(result.damage)
                bad_bodies += result.bad_bodies
                decode_errors += result.decode_errors[: MOST_SAMPLED - len(decode_errors)]
                report(position, total)
        # last: the marker of a complete directory
        (directory / SUCCESS).touch()
    places = tuple(sorted(damage, key=lambda place: (place.file, place.offset)))
    return Ingested(
        rows=rows,
        bytes=size,
        seconds=time.monotonic() - started,
        damage=places,
        bad_bodies=bad_bodies,
        decode_errors=tuple(decode_errors),
    )


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

    rows, size, bad_bodies = 0, 0, 0
    for batch in scan.batches():
        # min_count: the sum of no rows is 0, not null
        rows, size = rows + batch.num_rows, size + pc.sum(batch.column("store_size"), min_count=0).as_py()
        if scan.request.decode is not None:
            # a body that is null itself is damage
            bad_bodies += batch.column(VALUE).null_count - batch.column("body").null_count
        files.write(batch)
    return PieceResult(rows, size, scan.damage, bad_bodies, scan.decode_errors)


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
