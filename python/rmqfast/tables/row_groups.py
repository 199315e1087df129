"""Rows that wait until they fill a row group, by partition. Memory is bounded: what exceeds it waits in a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, NamedTuple, Self

from rmqfast.tables.partitioning import Key
from rmqfast.threads import new_lock

if TYPE_CHECKING:
    import pyarrow as pa

#: Bytes in Arrow's format, and rows, that make a row group.
GROUP_BYTES = 40 << 20
GROUP_ROWS = 1 << 20
#: Bytes of waiting rows that stay in memory, of all partitions.
MEMORY_BYTES = 64 << 20


class _Place(NamedTuple):
    """A batch in the file."""

    offset: int
    length: int


@dataclass
class _Waiting:
    """The rows of a partition: batches, serialized batches, and places of those in the file."""

    parts: list[pa.RecordBatch | pa.Buffer | _Place] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0
    in_memory: int = 0


class RowGroups:
    """Collects the rows of each partition. All methods may be called by several threads.

    Args:
        schema: The columns of all batches.
        directory: Directory of the file for rows that exceed the memory; None for the system's.
    """

    def __init__(self, schema: pa.Schema, directory: Path | None) -> None:
        self._schema = schema
        # no name in the directory, so that nothing is left of a process that is killed
        self._file: IO[bytes] = TemporaryFile(dir=directory, prefix=".rmqfast-")  # noqa: SIM115 - closed by __exit__
        self._lock = new_lock()
        self._by_key: dict[Key, _Waiting] = {}
        self._in_memory = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Drops all rows."""
        self._by_key.clear()
        self._file.close()

    def add(self, key: Key, batch: pa.RecordBatch, *, is_slice: bool) -> list[pa.RecordBatch] | None:
        """Adds rows of a partition. Returns all of its rows if they fill a row group, and forgets them."""
        # serialized: a slice would keep the memory of the whole batch
        part = batch.serialize() if is_slice else batch
        size = part.size if is_slice else part.nbytes
        with self._lock:
            waiting = self._by_key.setdefault(key, _Waiting())
            waiting.parts.append(part)
            waiting.rows += batch.num_rows
            waiting.bytes += size
            waiting.in_memory += size
            self._in_memory += size
            if waiting.bytes >= GROUP_BYTES or waiting.rows >= GROUP_ROWS:
                return self._take(key)
            while self._in_memory > MEMORY_BYTES:
                self._write_largest()
        return None

    def take_rest(self) -> Iterator[tuple[Key, list[pa.RecordBatch]]]:
        """Yields the rows of each partition that do not fill a row group."""
        while True:
            with self._lock:
                if not self._by_key:
                    return
                key = next(iter(self._by_key))
                batches = self._take(key)
            yield key, batches

    def _take(self, key: Key) -> list[pa.RecordBatch]:
        waiting = self._by_key.pop(key)
        self._in_memory -= waiting.in_memory
        return [self._read(part) for part in waiting.parts]

    def _write_largest(self) -> None:
        waiting = max(self._by_key.values(), key=lambda each: each.in_memory)
        end = self._file.seek(0, 2)
        for number, part in enumerate(waiting.parts):
            if not isinstance(part, _Place):
                bytes_ = part if not hasattr(part, "serialize") else part.serialize()
                self._file.write(bytes_)
                waiting.parts[number] = _Place(end, bytes_.size)
                end += bytes_.size
        self._in_memory -= waiting.in_memory
        waiting.in_memory = 0

    def _read(self, part: pa.RecordBatch | pa.Buffer | _Place) -> pa.RecordBatch:
        import pyarrow as pa

        if isinstance(part, _Place):
            self._file.seek(part.offset)
            part = pa.py_buffer(self._file.read(part.length))
        return pa.ipc.read_record_batch(part, self._schema) if isinstance(part, pa.Buffer) else part
