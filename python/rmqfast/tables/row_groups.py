"""Rows that wait until they fill a row group, by partition. Memory is bounded: what exceeds it waits in a file."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from mmap import ACCESS_READ, mmap
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, NamedTuple, Self

from rmqfast.tables.partitioning import Key
from rmqfast.threads import new_lock

if TYPE_CHECKING:
    import pyarrow as pa

#: Bytes in Arrow's format that make a row group.
GROUP_BYTES = 40 << 20
#: Bytes that must wait beside those of a row group before it is written: else a partition could end with a tiny one.
REST_BYTES = 16 << 20
#: Bytes of waiting rows that stay in memory, of all partitions.
MEMORY_BYTES = 64 << 20


class _Place(NamedTuple):
    """A batch in the file."""

    offset: int
    length: int


class _Part(NamedTuple):
    """Rows of a partition: a batch, a serialized batch, or the place of one in the file."""

    rows: pa.RecordBatch | pa.Buffer | _Place
    bytes: int

    @property
    def in_memory(self) -> int:
        return 0 if isinstance(self.rows, _Place) else self.bytes


@dataclass
class _Waiting:
    """The rows of a partition, in their order."""

    parts: deque[_Part] = field(default_factory=deque)
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
        """Adds rows of a partition. Returns its oldest rows if they fill a row group, and forgets them."""
        # serialized: a slice would keep the memory of the whole batch
        rows = batch.serialize() if is_slice else batch
        part = _Part(rows, rows.size if is_slice else rows.nbytes)
        with self._lock:
            waiting = self._by_key.setdefault(key, _Waiting())
            waiting.parts.append(part)
            waiting.bytes += part.bytes
            waiting.in_memory += part.bytes
            self._in_memory += part.bytes
            if waiting.bytes >= GROUP_BYTES + REST_BYTES:
                return self._take(key, GROUP_BYTES)
            while self._in_memory > MEMORY_BYTES:
                self._write_largest()
        return None

    def take_rest(self) -> Iterator[tuple[Key, list[pa.RecordBatch]]]:
        """Yields the rows of each partition that still wait."""
        while True:
            with self._lock:
                if not self._by_key:
                    return
                key, waiting = next(iter(self._by_key.items()))
                batches = self._take(key, waiting.bytes)
            yield key, batches

    def _take(self, key: Key, least: int) -> list[pa.RecordBatch]:
        """Removes the oldest rows of a partition, at least so many bytes."""
        waiting, taken = self._by_key[key], []
        left = waiting.bytes - least
        while waiting.bytes > left:
            part = waiting.parts.popleft()
            waiting.bytes -= part.bytes
            waiting.in_memory -= part.in_memory
            self._in_memory -= part.in_memory
            taken.append(part.rows)
        if not waiting.parts:
            del self._by_key[key]
        return self._read(taken)

    def _write_largest(self) -> None:
        waiting = max(self._by_key.values(), key=lambda each: each.in_memory)
        end = self._file.seek(0, 2)
        for number, part in enumerate(waiting.parts):
            if not isinstance(part.rows, _Place):
                bytes_ = part.rows if not hasattr(part.rows, "serialize") else part.rows.serialize()
                self._file.write(bytes_)
                waiting.parts[number] = part._replace(rows=_Place(end, bytes_.size))
                end += bytes_.size
        self._in_memory -= waiting.in_memory
        waiting.in_memory = 0

    def _read(self, parts: list[pa.RecordBatch | pa.Buffer | _Place]) -> list[pa.RecordBatch]:
        import pyarrow as pa

        file = self._map() if any(isinstance(part, _Place) for part in parts) else None
        batches = []
        for part in parts:
            rows = file.slice(part.offset, part.length) if file is not None and isinstance(part, _Place) else part
            batches.append(pa.ipc.read_record_batch(rows, self._schema) if isinstance(rows, pa.Buffer) else rows)
        return batches

    def _map(self) -> pa.Buffer:
        """Returns the file as a buffer. Read, the row groups of all threads would be in memory beside waiting rows."""
        import pyarrow as pa

        self._file.flush()
        return pa.py_buffer(mmap(self._file.fileno(), 0, access=ACCESS_READ))
