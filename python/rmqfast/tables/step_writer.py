"""Writes the messages of a step to Parquet files, in several threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from rmqfast.message import BadBody, Damage
from rmqfast.store.decode import VALUE
from rmqfast.system import return_free_memory, usable_cores
from rmqfast.tables.data_files import DataFile, DataFiles
from rmqfast.tables.row_groups import RowGroups
from rmqfast.tables.source import Source, Step
from rmqfast.tables.table import Table

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
    """What was read, and what could not be read."""

    rows: int = 0
    bytes: int = 0
    damage: set[Damage] = field(default_factory=set)
    losses: list[str] = field(default_factory=list)
    bad_bodies: int = 0
    decode_errors: list[BadBody] = field(default_factory=list)

    def add(self, read: _ReadPiece) -> None:
        self.rows += read.rows
        self.bytes += read.bytes
        self.damage.update(read.damage)
        self.losses += read.losses
        self.bad_bodies += read.bad_bodies
        self.decode_errors += read.decode_errors[: _MOST_SAMPLED - len(self.decode_errors)]


class StepWriter:
    """Reads steps of a source, and writes their messages to data files of a table.

    Args:
        source: The source.
        table: The table.
        compression: Of the files.
        spill: Directory for rows that exceed the memory; None for the system's.
    """

    def __init__(self, source: Source, table: Table, compression: str, spill: Path | None) -> None:
        self._source, self._table = source, table
        self._compression, self._spill = compression, spill
        self._threads = min(usable_cores(), _MOST_THREADS)
        self.counts = Counts()

    @contextmanager
    def write(
        self, step: Step, check: Callable[[list[Damage]], None], progress: Callable[[int], object]
    ) -> Iterator[list[DataFile]]:
        """Yields the complete files of a step. An error before that removes them.

        `check` is called with the damage of each part, and may raise an error. `progress` is called with the number of
        parts that are read.
        """
        table = self._table
        files = DataFiles(table.create_file, table.remove_file, table.file_schema, self._compression)
        try:
            check(step.lost)
            self.counts.damage.update(step.lost)
            with (
                RowGroups(self._source.schema, self._spill) as groups,
                ThreadPoolExecutor(self._threads, thread_name_prefix="rmqfast-tables") as pool,
            ):
                try:
                    reads = pool.map(lambda piece: self._read(piece, groups, files), step.pieces)
                    for number, read in enumerate(reads, start=1):
                        check(read.damage)
                        self.counts.add(read)
                        progress(number)
                    for _ in pool.map(lambda _: _write_rest(groups, files), range(self._threads)):
                        pass
                except BaseException:
                    pool.shutdown(cancel_futures=True)
                    raise
            done = files.close()
        except BaseException:
            files.discard()
            raise
        yield done

    def _read(self, piece: bytes, groups: RowGroups, files: DataFiles) -> _ReadPiece:
        import pyarrow.compute as pc

        scan = self._source.scan(piece)
        rows, size, bad_bodies = 0, 0, 0
        for batch in scan.batches():
            # min_count: the sum of no rows is 0, not null
            rows, size = rows + batch.num_rows, size + pc.sum(batch.column("store_size"), min_count=0).as_py()
            if scan.request.decode is not None:
                # a body that is null itself is damage
                bad_bodies += batch.column(VALUE).null_count - batch.column("body").null_count
            for key, part in self._table.partitioning.split(batch):
                full = groups.add(key, part, is_slice=part is not batch)
                if full is not None:
                    files.write(key, full)
                    del full
                    return_free_memory()
        return _ReadPiece(rows, size, scan.damage, scan.losses, bad_bodies, scan.decode_errors)


def _write_rest(groups: RowGroups, files: DataFiles) -> None:
    for key, batches in groups.take_rest():
        files.write(key, batches)
        files.finish_partition(key)
