"""The Parquet files of one thread: one per day and topic, in directories that are named as Spark names them.

Source: Spark's `ExternalCatalogUtils`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, nullcontext, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rmqfast.system import sync_file

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
