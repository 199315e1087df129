"""Exports messages as a new store or as JSON lines, for `MessageStore.export`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TextIO, get_args

from rmqfast._native import COLUMNS, Store
from rmqfast.errors import ArgumentError, StoreBusyError, StoreError, StoreIOError, StoreNotFoundError
from rmqfast.message import Damage
from rmqfast.paths import exists, local_path
from rmqfast.store.append_options import AppendOptions, zone_offset_ms
from rmqfast.store.json_lines import json_lines, plain_rows
from rmqfast.store.report import ExportReport
from rmqfast.store.request import ScanRequest
from rmqfast.store.scan import Scan
from rmqfast.store.scan_source import StoreSource
from rmqfast.system import lock_file, sync_file

ExportFormat = Literal["store", "jsonl"]
Progress = Callable[[int, int], object]


def export(
    source: StoreSource,
    request: ScanRequest,
    out: str | os.PathLike[str] | TextIO,
    *,
    form: ExportFormat | None,
    options: AppendOptions | None,
    progress: Progress | None,
) -> ExportReport:
    if form not in {None, *get_args(ExportFormat)}:
        raise ArgumentError(f"format: expected 'store' or 'jsonl', got {form!r}")
    # the format follows from the file's name unless it is given
    if (form or _format_of(out)) == "jsonl":
        return _export_lines(source, out, request, progress)
    if not isinstance(out, str | os.PathLike):
        raise ArgumentError(f"out: expected a path for a store, got {out!r}")
    path = os.fspath(local_path(out, "out"))
    # the zone is needed for the names of index files
    sizes = (None if options is None else options.with_system_values(), zone_offset_ms())
    fields = source.native.export(request, path, sizes=sizes, progress=progress)
    fields["damage"] = [Damage(*entry) for entry in fields["damage"]]
    return ExportReport(path=path, format="store", **fields)


def _export_lines(
    source: StoreSource, out: str | os.PathLike[str] | TextIO, request: ScanRequest, progress: Progress | None
) -> ExportReport:
    scan = Scan(source, request)
    if isinstance(out, str | os.PathLike):
        path = os.fspath(local_path(out, "out"))
        with _new_file(Path(path)) as file:
            rows, size = _write_lines(source.native, file, scan, progress)
    else:
        path = None
        rows, size = _write_lines(source.native, out, scan, progress)
    damage = scan.damage
    return ExportReport(path=path, format="jsonl", rows=rows, bytes=size, files=1, damage=damage)


def _write_lines(store: Store, file: TextIO, scan: Scan, progress: Progress | None) -> tuple[int, int]:
    info = store.info() if progress else {}
    first, total = info.get("min_offset", 0), info.get("max_offset", 0) - info.get("min_offset", 0)
    count, size = 0, 0
    for rows in plain_rows(scan):
        text = json_lines(COLUMNS, rows)
        file.write(text)
        # encoding is only needed to count the bytes of non-ASCII strings
        count, size = count + len(rows), size + (len(text) if text.isascii() else len(text.encode()))
        if progress and rows:
            # the position in the log is the progress
            last = rows[-1][COLUMNS.index("physical_offset")]
            progress(min(int(str(last)) - first, total), total)
    if progress:
        progress(total, total)
    return count, size


def _format_of(out: str | os.PathLike[str] | TextIO) -> ExportFormat:
    if not isinstance(out, str | os.PathLike):
        return "jsonl"
    return "jsonl" if Path(out).suffix in {".jsonl", ".ndjson"} else "store"


@contextmanager
def _new_file(path: Path) -> Iterator[TextIO]:
    # a broken link counts, too: `rename` would replace it
    if exists(path):
        raise ArgumentError(f"out: expected a path where nothing is yet, got {path}")
    partial = path.with_name(f"{path.name}.partial")
    try:
        # "a": another process may be writing it, and opening must not empty it
        with partial.open("a", encoding="utf-8", newline="\n") as file:
            _own(file, partial)
            try:
                yield file
                file.flush()
                # flushed before the rename, so that a crash never leaves an incomplete file at `path`
                sync_file(file.fileno())
                partial.rename(path)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        # the parent directory is missing
        kind = StoreNotFoundError if isinstance(error, FileNotFoundError) else StoreIOError
        raise kind(error.errno, (error.strerror or str(error)).lower(), str(error.filename or partial)) from None


def _own(file: TextIO, path: Path) -> None:
    try:
        lock_file(file)
    except BlockingIOError:
        raise StoreBusyError(f"{path}: another process exports to it") from None
    # only after the lock: the rest of an export that was killed
    file.truncate(0)
