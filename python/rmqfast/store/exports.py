"""Exports: a part of a store as a store of its own, or as JSON lines."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal, TextIO, get_args

from rmqfast.errors import ArgumentError, StoreBusyError, StoreError, StoreIOError, StoreNotFoundError
from rmqfast.message import Damage
from rmqfast.store.append_options import AppendOptions, zone_offset_ms
from rmqfast.store.json_lines import json_lines, plain_rows
from rmqfast.store.lookups import Lookups
from rmqfast.store.report import ExportReport
from rmqfast.store.request import COLUMNS, ScanRequest, Time, one_or_several, time_range
from rmqfast.store.scan import Scan

__all__ = ["ExportFormat", "Exports"]

ExportFormat = Literal["store", "jsonl"]
Progress = Callable[[int, int], object]


class Exports(Lookups):
    """The part of a `MessageStore` that takes messages out of it."""

    def export(
        self,
        out: str | os.PathLike[str] | TextIO,
        topic: str | Sequence[str] | None = None,
        *,
        queue_ids: Sequence[int] | None = None,
        tags: str = "*",
        sql: str | None = None,
        keys: Sequence[str] | None = None,
        start_offset: int | Mapping[int, int] | None = None,
        end_offset: int | Mapping[int, int] | None = None,
        start_time: Time | None = None,
        end_time: Time | None = None,
        format: ExportFormat | None = None,  # noqa: A002  (what it is called elsewhere, too)
        options: AppendOptions | None = None,
        progress: Progress | None = None,
    ) -> ExportReport:
        """Writes what a scan would give to a new store, or to a file of JSON lines.

        A new store has the same records, compressed bodies as they are, with the same queue offsets: only their
        physical offsets, and the ids made of those, are new. Consume queues, index, checkpoint and
        `config/topics.json` are made; it opens with `open_store(mode="a")` and in RocketMQ without recovery. Where
        messages of a queue are left out, units that lead nowhere keep the others' places; a consumer is led past them.
        Without `topic` every record goes along, prepared and rolled-back ones, too; consumer offsets and groups do not.

        Nothing is at `out` before all of it is on the disk: it is made beside it, as `out` + ".partial".

        Args:
            out: Where to: a path where nothing is yet. For JSON lines also an open text file.
            topic: Only this topic, or these; all without it.
            queue_ids: Only these queues.
            tags: Tag expression, as "A || B".
            sql: SQL92 condition over the properties.
            keys: Only messages that have one of these keys, or one as UNIQ_KEY.
            start_offset: Queue offsets from here on: one number, or one by queue.
            end_offset: Queue offsets before this.
            start_time: Store timestamps from here on: milliseconds, ISO 8601, datetime.
            end_time: Store timestamps before this.
            format: "store" or "jsonl" (rows as `rmqfast store scan -o jsonl` prints them); unless given, "jsonl" for an
                open file and for names that end in .jsonl or .ndjson.
            options: Sizes of the new store's files; those of this store unless given.
            progress: Called now and then with bytes of the log that were read, and bytes in all; what it raises ends
                the export.

        Raises:
            UnknownTopicError: The store has no such topic.
            ExpressionError: `tags` or `sql` does not parse.
            ArgumentError: Something is at `out`; a value out of range; a file size that a record does not fit.
            StoreIOError: The operating system refused, as for a full disk; nothing is left at `out`.
            MissingExtraError: JSON lines need pyarrow.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> report = store.export(getfixture("tmp_path") / "slice", "fx_q1", tags="Aa || BB")
            >>> report.rows, report.ok
            (213, True)
            >>> rmqfast.open_store(report.path).topics()
            {'fx_q1': {0: (5, 1255)}}

        Source: `CommitLog.DefaultAppendMessageCallback.doAppend`, `ConsumeQueue.fillPreBlank`.
        """
        one_topic, several = one_or_several(topic)
        first_time, last_time = time_range(start_time, end_time)
        request = ScanRequest(
            topic=one_topic,
            among=several,
            queue_ids=queue_ids,
            tags=tags,
            sql=sql,
            keys=keys,
            start_offset=start_offset,
            end_offset=end_offset,
            start_time=first_time,
            end_time=last_time,
            broker_name=self._broker_name,
            verify_crc=True,
        )
        if format not in {None, *get_args(ExportFormat)}:
            raise ArgumentError(f"format: expected 'store' or 'jsonl', got {format!r}")
        if (format or _format_of(out)) == "jsonl":
            return self._export_lines(out, request, progress)
        if not isinstance(out, str | os.PathLike):
            raise ArgumentError(f"out: expected a path for a store, got {out!r}")
        path = os.fspath(out)
        sizes = (None if options is None else options.completed(), zone_offset_ms())
        fields = self._native.export(request, path, sizes=sizes, progress=progress)
        fields["damage"] = [Damage(*entry) for entry in fields["damage"]]
        return ExportReport(path=path, format="store", **fields)

    def _export_lines(
        self, out: str | os.PathLike[str] | TextIO, request: ScanRequest, progress: Progress | None
    ) -> ExportReport:
        found = Scan(partial(self._native.scan, request, way=None, threads=1))
        if isinstance(out, str | os.PathLike):
            path = os.fspath(out)
            with _new_file(Path(path)) as file:
                rows, size = self._write_lines(file, found, progress)
        else:
            path = None
            rows, size = self._write_lines(out, found, progress)
        damage = found.damage
        return ExportReport(path=path, format="jsonl", rows=rows, bytes=size, files=1, damage=damage)

    def _write_lines(self, file: TextIO, found: Scan, progress: Progress | None) -> tuple[int, int]:
        info = self._native.info() if progress else {}
        first, total = info.get("min_offset", 0), info.get("max_offset", 0) - info.get("min_offset", 0)
        count, size = 0, 0
        for rows in plain_rows(found):
            text = json_lines(COLUMNS, rows)
            file.write(text)
            count, size = count + len(rows), size + (len(text) if text.isascii() else len(text.encode()))
            if progress and rows:
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
    """A file that takes its name once all of it is written and on the disk."""
    if path.exists() or path.is_symlink():
        raise ArgumentError(f"out: expected a path where nothing is yet, got {path}")
    partial = path.with_name(f"{path.name}.partial")
    try:
        with partial.open("a", encoding="utf-8", newline="\n") as file:
            _own(file, partial)
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                partial.rename(path)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        kind = StoreNotFoundError if isinstance(error, FileNotFoundError) else StoreIOError
        raise kind(error.errno, (error.strerror or str(error)).lower(), str(error.filename or partial)) from None


def _own(file: TextIO, path: Path) -> None:
    """Keeps others out, and forgets what a process that died had written."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StoreBusyError(f"{path}: another process exports to it") from None
    file.truncate(0)
