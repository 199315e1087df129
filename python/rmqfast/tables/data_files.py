"""The Parquet files of a commit. Each partition has one file, or more while several threads write its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rmqfast.tables.partitioning import Key
from rmqfast.threads import new_lock

if TYPE_CHECKING:
    import pyarrow as pa

#: Bytes after which a new file starts, because the metadata of all row groups stays in memory until the end.
FILE_BYTES = 1 << 30
#: Files that are closed at the same time after an error.
_MOST_CLOSED = 16
#: Columns whose values repeat. Dictionaries of all others cost a fifth of the time, and the files are larger.
REPEATING = ("topic", "broker_name", "tags", "born_host", "store_host")
COMPRESSIONS = ("snappy", "zstd", "lz4", "gzip", "none")


@dataclass(frozen=True)
class DataFile:
    """A Parquet file that is complete, but not part of its table yet.

    Attributes:
        path: Path or URL, as the table's storage names it.
        key: The partition.
        size: Bytes of the file.
        metadata: The footer, as `pyarrow.parquet.FileMetaData`.
    """

    path: str
    key: Key
    size: int
    metadata: Any


class DataFiles:
    """Writes row groups to Parquet files. All methods but `close` and `discard` may be called by several threads.

    Args:
        create: Creates a file for a partition, and returns its path and an open `pyarrow.NativeFile`.
        remove: Removes a file.
        schema: The columns of the files, in their order.
        compression: One of `COMPRESSIONS`.
    """

    def __init__(
        self,
        create: Callable[[Key], tuple[str, Any]],
        remove: Callable[[str], object],
        schema: pa.Schema,
        compression: str,
    ) -> None:
        self._create, self._remove, self._schema, self._compression = create, remove, schema, compression
        self._lock = new_lock()
        self._idle: dict[Key, list[_OpenFile]] = {}
        self._open: set[_OpenFile] = set()
        self._done: list[DataFile] = []

    def write(self, key: Key, batches: Sequence[pa.RecordBatch]) -> None:
        """Writes rows of a partition as one row group."""
        with self._lock:
            idle = self._idle.get(key)
            file = idle.pop() if idle else None
        if file is None:
            path, sink = self._create(key)
            file = _OpenFile(path, key, sink, self._schema, self._compression)
            with self._lock:
                self._open.add(file)
        file.write(batches)
        if file.size >= FILE_BYTES:
            self._finish(file)
        else:
            with self._lock:
                self._idle.setdefault(key, []).append(file)

    def finish_partition(self, key: Key) -> None:
        """Finishes the files of a partition that gets no more rows."""
        with self._lock:
            files = self._idle.pop(key, [])
        for file in files:
            self._finish(file)

    def close(self) -> list[DataFile]:
        """Finishes all files and returns them."""
        for key in list(self._idle):
            self.finish_partition(key)
        return self._done

    def discard(self) -> None:
        """Removes all files. Those that cannot be removed stay, as the error that led here is the one to tell."""
        with ThreadPoolExecutor(_MOST_CLOSED) as pool:
            # an object store that does not answer takes seconds for each
            list(pool.map(_OpenFile.abandon, self._open))
        for path in [file.path for file in self._done] + [file.path for file in self._open]:
            # each library has its own errors
            with suppress(Exception):
                self._remove(path)

    def _finish(self, file: _OpenFile) -> None:
        done = file.finish()
        with self._lock:
            self._open.discard(file)
            self._done.append(done)


class _OpenFile:
    def __init__(self, path: str, key: Key, sink: Any, schema: pa.Schema, compression: str) -> None:
        from pyarrow import parquet

        self.path, self.key, self.sink = path, key, sink
        self._schema = schema
        self._writer = parquet.ParquetWriter(
            sink,
            schema,
            compression=compression,
            use_dictionary=[name for name in REPEATING if name in schema.names],
        )

    @property
    def size(self) -> int:
        return int(self.sink.tell())

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        import pyarrow as pa

        # a column at a time: many batches have a few rows only
        rows = pa.Table.from_batches(batches).select(self._schema.names).cast(self._schema)
        self._writer.write_table(rows, row_group_size=rows.num_rows)

    def finish(self) -> DataFile:
        self._writer.close()
        size = self.size
        self.sink.close()
        return DataFile(self.path, self.key, size, self._writer.writer.metadata)

    def abandon(self) -> None:
        # after an error the file is useless, but must be closed
        with suppress(Exception):
            self._writer.close()
        with suppress(Exception):
            self.sink.close()
