"""Writes the messages of a step to Parquet files, in several threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rmqfast.message import BadBody, Damage
from rmqfast.store.decode import VALUE
from rmqfast.system import return_free_memory, usable_cores
from rmqfast.tables.data_files import DataFile, DataFiles
from rmqfast.tables.errors_table import ErrorRows, ErrorsTable, split_bad_bodies
from rmqfast.tables.row_groups import RowGroups
from rmqfast.tables.source import Source, Step
from rmqfast.tables.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_THREADS = 8
#: Maximum number of bad bodies that a report lists, as of a piece of a scan.
_MOST_SAMPLED = 100


class _ReadPiece(NamedTuple):
    rows: int
    bytes: int
    damage: list[Damage]
    losses: list[str]
    bad_bodies: int
    decode_errors: list[BadBody]


@dataclass
class Counts:
    """The counts of messages, and of what could not be read."""

    rows: int = 0
    bytes: int = 0
    damage: set[Damage] = field(default_factory=set)
    losses: list[str] = field(default_factory=list)
    bad_bodies: int = 0
    decode_errors: list[BadBody] = field(default_factory=list)
    errors: int = 0

    def add(self, read: _ReadPiece) -> None:
        self.rows += read.rows
        self.bytes += read.bytes
        self.losses += read.losses

    def add_faults(self, read: _ReadPiece) -> None:
        """Adds damage and bad bodies, which no table of errors has."""
        self.damage.update(read.damage)
        self.bad_bodies += read.bad_bodies
        self.decode_errors += read.decode_errors[: _MOST_SAMPLED - len(self.decode_errors)]


class WrittenStep(NamedTuple):
    """The complete files of a step, which no table has yet."""

    files: list[DataFile]
    error_files: list[DataFile]


class StepWriter:
    """Reads steps of a source, and writes their messages to data files of a table.

    Args:
        source: The source.
        table: The table.
        errors: The table of errors. Without it, bodies that could not be decoded are rows as others, with a null value.
        compression: Of the files.
        spill: Directory for rows that exceed the memory; None for the system's.
    """

    def __init__(
        self, source: Source, table: Table, errors: ErrorsTable | None, *, compression: str, spill: Path | None
    ) -> None:
        self._source, self._table, self._errors = source, table, errors
        self._compression, self._spill = compression, spill
        self._threads = min(usable_cores(), _MOST_THREADS)
        self.counts: Counts = Counts()

    def write(
        self, step: Step, check: Callable[[list[Damage]], None], progress: Callable[[int], object]
    ) -> WrittenStep:
        """Writes the files of a step. An error removes them.

        `check` is called with the damage of each part, and may raise an error. `progress` is called with the number of
        parts that are read.
        """
        table = self._table
        files = DataFiles(table.create_file, table.remove_file, table.file_schema, self._compression)
        errors = None if self._errors is None else self._errors.new_rows(self._compression, self._spill)
        try:
            check(step.lost)
            if errors is None:
                self.counts.damage.update(step.lost)
            else:
                errors.add_damage(step.lost)
            with (
                RowGroups(self._source.schema, self._spill) as groups,
                ThreadPoolExecutor(self._threads, thread_name_prefix="rmqfast-tables") as pool,
            ):
                try:
                    reads = pool.map(lambda piece: self._read(piece, groups, files, errors), step.pieces)
                    for number, read in enumerate(reads, start=1):
                        check(read.damage)
                        self.counts.add(read)
                        if errors is None:
                            self.counts.add_faults(read)
                        progress(number)
                    for _ in pool.map(lambda _: _write_rest(groups, files), range(self._threads)):
                        pass
                except BaseException:
                    pool.shutdown(cancel_futures=True)
                    raise
            error_files = [] if errors is None else errors.finish()
            self.counts.errors += sum(file.metadata.num_rows for file in error_files)
            return WrittenStep(files.close(), error_files)
        except BaseException:
            files.discard()
            if errors is not None:
                errors.discard()
            raise
        finally:
            # once a step: to fetch it anew for each row group costs a fifth of an ingest
            return_free_memory()

    def _read(self, piece: Any, groups: RowGroups, files: DataFiles, errors: ErrorRows | None) -> _ReadPiece:
        import pyarrow.compute as pc

        scan = self._source.scan(piece)
        is_decoded = scan.request.decode is not None
        rows, size, bad_bodies = 0, 0, 0
        bad_rows: list[pa.RecordBatch] = []
        for batch in scan.batches():
            # min_count: the sum of no rows is 0, not null
            size += pc.sum(batch.column("store_size"), min_count=0).as_py()
            good = batch
            if is_decoded:
                # a body that is null itself is damage
                bad_bodies += batch.column(VALUE).null_count - batch.column("body").null_count
                if errors is not None:
                    good, bad = split_bad_bodies(batch)
                    bad_rows += [] if bad is None else [bad]
            rows += good.num_rows
            for key, part in self._table.partitioning.split(good):
                full = groups.add(key, part, is_slice=part is not batch)
                if full is not None:
                    files.write(key, full)
                    # not kept while the next rows are read
                    del full
        if errors is not None:
            errors.add_damage(scan.damage)
            for bad in bad_rows:
                errors.add_bodies(bad, scan.decode_errors)
        return _ReadPiece(rows, size, scan.damage, scan.losses, bad_bodies, scan.decode_errors)


def _write_rest(groups: RowGroups, files: DataFiles) -> None:
    for key, batches in groups.take_rest():
        files.write(key, batches)
        files.finish_partition(key)
