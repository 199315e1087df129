"""Writes a whole small store directory, the same bytes for the same messages and options.

The layout is what a broker leaves after a clean stop: commit log, consume queues, index files, checkpoint.
Source: CommitLog.DefaultAppendMessageCallback.doAppend, ConsumeQueue.putMessagePositionInfo, IndexService.buildIndex.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from . import compression, consume_queue, properties, record
from .checkpoint import Checkpoint
from .consume_queue import PRE_BLANK, UNIT_BYTES, Unit
from .host import Host
from .index_file import Geometry, IndexService
from .record import LOOPBACK, MAX_V1_TOPIC_BYTES, MIN_BLANK_BYTES, Record

SMALL_GEOMETRY = Geometry(slots=1000, entries=4000)


@dataclass(frozen=True)
class Message:
    """What is to be stored; `properties` may repeat a name, `compression` is lz4, zstd, zlib or None."""

    topic: str
    body: bytes = b""
    queue_id: int = 0
    properties: tuple[tuple[str, str], ...] = ()
    flag: int = 0
    sys_flag: int = 0
    compression: str | None = None
    born_timestamp: int = 0
    born_host: Host = LOOPBACK
    store_timestamp: int = 1_700_000_000_000
    store_host: Host = LOOPBACK
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0


@dataclass(frozen=True)
class Options:
    """Sizes are in bytes. `first_queue_offsets` are those of queues whose older units are gone already.

    File k of the commit log goes to `commitlog_dirs[k % n]`. `dirty_blanks` leaves rubbish behind the 8 bytes of each
    blank record, `preallocated` an all-zero file behind the last one, as a crashed broker does.
    """

    commitlog_file_size: int = 1 << 20
    consume_queue_file_size: int = 100 * UNIT_BYTES
    index_geometry: Geometry = SMALL_GEOMETRY
    commitlog_dirs: tuple[str, ...] = ("commitlog",)
    first_file: int = 0
    first_queue_offsets: Mapping[tuple[str, int], int] = field(default_factory=dict)
    v2: bool = False
    property_crc: bool = False
    trailing_separator: bool = False
    dirty_blanks: bool = False
    preallocated: bool = False
    aborted: bool = False


@dataclass(frozen=True)
class WrittenStore:
    path: Path
    commitlog_dirs: list[Path]
    records: list[Record]
    options: Options


def write_store(path: Path, messages: Sequence[Message | Sequence[Message]], options: Options) -> WrittenStore:
    """Writes the store into `path`; a sequence among `messages` is a batch, which is never split over two files."""
    writer = _Writer(options)
    for item in messages:
        writer.append([item] if isinstance(item, Message) else list(item))
    path.mkdir(parents=True, exist_ok=True)
    writer.save(path)
    return WrittenStore(path, [path / name for name in options.commitlog_dirs], writer.records, options)


class _Writer:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.position = options.first_file * options.commitlog_file_size
        self.files: dict[int, bytearray] = {}
        self.next_offsets = dict(options.first_queue_offsets)
        self.queues: dict[tuple[str, int], list[tuple[Unit, int]]] = {}
        self.index = IndexService(options.index_geometry)
        self.records: list[Record] = []

    def append(self, batch: Sequence[Message]) -> None:
        sizes = [self._record(message, 0, 0).store_size for message in batch]
        self._make_room(sum(sizes))
        for message in batch:
            self._append_one(message)

    def _append_one(self, message: Message) -> None:
        key = (message.topic, message.queue_id)
        has_place = self._record(message, 0, 0).has_queue_place
        queue_offset = self.next_offsets.get(key, 0) if has_place else 0
        stored = self._record(message, queue_offset, self.position)
        file = self.files[self._file_start()]
        at = self.position - self._file_start()
        file[at : at + stored.store_size] = record.encode(stored)
        self.position += stored.store_size
        self.records.append(stored)
        if has_place:
            self.next_offsets[key] = queue_offset + 1
            self.queues.setdefault(key, []).append((consume_queue.unit_of(stored), stored.store_timestamp))
        self.index.build(stored, _index_file_name(stored.store_timestamp))

    def _record(self, message: Message, queue_offset: int, physical_offset: int) -> Record:
        body, bits = message.body, 0
        if message.compression:
            body, bits = compression.compress(message.body, message.compression)
        stored = Record(
            topic=message.topic,
            queue_id=message.queue_id,
            queue_offset=queue_offset,
            physical_offset=physical_offset,
            body=body,
            property_bytes=properties.encode(message.properties, self.options.trailing_separator),
            flag=message.flag,
            sys_flag=message.sys_flag | bits,
            born_timestamp=message.born_timestamp,
            born_host=message.born_host,
            store_timestamp=message.store_timestamp,
            store_host=message.store_host,
            reconsume_times=message.reconsume_times,
            prepared_transaction_offset=message.prepared_transaction_offset,
            v2=self.options.v2 or len(message.topic.encode()) > MAX_V1_TOPIC_BYTES,
        )
        return record.complete(stored, self.options.property_crc)

    def _make_room(self, size: int) -> None:
        file_size = self.options.commitlog_file_size
        if size + MIN_BLANK_BYTES > file_size:
            raise ValueError(f"{size} bytes do not fit into a file of {file_size}")
        self.files.setdefault(self._file_start(), bytearray(file_size))
        remaining = self._file_start() + file_size - self.position
        if size + MIN_BLANK_BYTES > remaining:
            blank = record.encode_blank(remaining)
            rubbish = (b"\xa5" if self.options.dirty_blanks else b"\0") * (remaining - len(blank))
            self.files[self._file_start()][file_size - remaining :] = blank + rubbish
            self.position += remaining
            self.files[self._file_start()] = bytearray(file_size)

    def _file_start(self) -> int:
        return self.position // self.options.commitlog_file_size * self.options.commitlog_file_size

    def save(self, path: Path) -> None:
        self._save_commit_log(path)
        for (topic, queue_id), units in self.queues.items():
            first = self.options.first_queue_offsets.get((topic, queue_id), 0)
            self._save_queue(path / "consumequeue" / topic / str(queue_id), first, units)
        for name, file in self.index.files.items():
            _write(path / "index" / name, file.encode(), file.end_timestamp)
        _write(path / "checkpoint", self._checkpoint().encode(), self._last_timestamp())
        if self.options.aborted:
            _write(path / "abort", b"", self._last_timestamp())

    def _save_commit_log(self, path: Path) -> None:
        size, dirs = self.options.commitlog_file_size, self.options.commitlog_dirs
        for name in dirs:
            (path / name).mkdir(parents=True, exist_ok=True)
        if self.options.preallocated and self.files:
            self.files[max(self.files) + size] = bytearray(size)
        for start, data in self.files.items():
            _write(path / dirs[start // size % len(dirs)] / f"{start:020d}", bytes(data), self._last_timestamp())

    def _save_queue(self, directory: Path, first: int, units: list[tuple[Unit, int]]) -> None:
        """The first file is filled with pre-blank units up to the first one; the last with zeroes."""
        size = self.options.consume_queue_file_size
        start = first * UNIT_BYTES // size * size
        filled = [(PRE_BLANK, units[0][1])] * (first - start // UNIT_BYTES) + units
        per_file = size // UNIT_BYTES
        for at in range(0, len(filled), per_file):
            part = filled[at : at + per_file]
            data = b"".join(unit.encode() for unit, _ in part).ljust(size, b"\0")
            _write(directory / f"{start + at * UNIT_BYTES:020d}", data, part[-1][1])

    def _checkpoint(self) -> Checkpoint:
        full = [file.end_timestamp for file in self.index.files.values() if file.is_full]
        return Checkpoint(self._last_timestamp(), self._last_timestamp(), max(full, default=0))

    def _last_timestamp(self) -> int:
        return max((stored.store_timestamp for stored in self.records), default=0)


def _write(path: Path, data: bytes, mtime_millis: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, ns=(mtime_millis * 1_000_000, mtime_millis * 1_000_000))


def _index_file_name(millis: int) -> str:
    """yyyyMMddHHmmssSSS of the time, in UTC so that a name does not depend on where the test runs."""
    return datetime.fromtimestamp(millis // 1000, UTC).strftime("%Y%m%d%H%M%S") + f"{millis % 1000:03d}"
