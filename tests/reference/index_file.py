"""Index files: `index/<yyyyMMddHHmmssSSS>`, a hash table on disk from topic#key to physical offsets.

    header: beginTimestamp, endTimestamp, beginPhyOffset, endPhyOffset i64; hashSlotCount, indexCount i32
    slot: number of the newest entry i32, 0 for none
    entry: keyHash i32, phyOffset i64, timeDiff i32 (seconds), previous entry i32; entry 0 is never used

The geometry cannot be told from the file. Source: IndexFile, IndexHeader, IndexService.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from . import properties
from .consume_queue import java_hash
from .record import TRANSACTION_MASK, TRANSACTION_ROLLBACK, Record

HEADER_LAYOUT = ">4q2i"
HEADER_BYTES = 40
ENTRY_LAYOUT = ">iqii"
ENTRY_BYTES = 20
MAX_RESULTS = 64
MAX_TIME = (1 << 63) - 1


class Geometry(NamedTuple):
    """`maxHashSlotNum` and `maxIndexNum` of the broker."""

    slots: int = 5_000_000
    entries: int = 20_000_000

    @property
    def file_size(self) -> int:
        return HEADER_BYTES + 4 * self.slots + ENTRY_BYTES * self.entries


DEFAULT_GEOMETRY = Geometry()


class Entry(NamedTuple):
    key_hash: int
    physical_offset: int
    seconds: int
    previous: int


def key_hash(topic: str, key: str) -> int:
    """abs(hashCode), where abs(-2^31) becomes 0 (`IndexFile.indexKeyHashMethod`)."""
    value = abs(java_hash(f"{topic}#{key}"))
    return 0 if value == 1 << 31 else value


def keys_of(record: Record) -> list[str]:
    """The keys that a record is indexed by, in the order of `IndexService.buildIndex`."""
    if record.sys_flag & TRANSACTION_MASK == TRANSACTION_ROLLBACK:
        return []
    found = record.properties
    unique = [found[properties.UNIQ_KEY]] if properties.UNIQ_KEY in found else []
    return unique + [key for key in found.get(properties.KEYS, "").split(" ") if key]


@dataclass
class IndexFile:
    """One file; `slots` and `entries` are sparse."""

    geometry: Geometry
    begin_timestamp: int = 0
    end_timestamp: int = 0
    begin_physical_offset: int = 0
    end_physical_offset: int = 0
    slots_used: int = 0
    next_entry: int = 1
    slots: dict[int, int] = field(default_factory=dict)
    entries: dict[int, Entry] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        return self.next_entry >= self.geometry.entries

    def put_key(self, hash_value: int, physical_offset: int, store_timestamp: int) -> bool:
        """False where the file is full."""
        if self.is_full:
            return False
        slot = hash_value % self.geometry.slots
        previous = self.slots.get(slot, 0)
        if not 0 < previous <= self.next_entry:
            previous = 0
        # relative to the begin time before this entry: a rolled file starts with the end time of the one before
        elapsed = max(0, store_timestamp - self.begin_timestamp) // 1000 if self.begin_timestamp > 0 else 0
        self.entries[self.next_entry] = Entry(hash_value, physical_offset, min(elapsed, 0x7FFFFFFF), previous)
        self.slots[slot] = self.next_entry
        if self.next_entry <= 1:
            self.begin_timestamp, self.begin_physical_offset = store_timestamp, physical_offset
        self.slots_used += previous == 0
        self.next_entry += 1
        self.end_timestamp, self.end_physical_offset = store_timestamp, physical_offset
        return True

    def successor(self) -> IndexFile:
        """The file that follows; it begins where this one ends, until its own first entry says otherwise."""
        time, offset = self.end_timestamp, self.end_physical_offset
        return IndexFile(self.geometry, time, time, offset, offset)

    def overlaps(self, begin: int, end: int) -> bool:
        first, last = self.begin_timestamp, self.end_timestamp
        return (begin < first and end > last) or first <= begin <= last or first <= end <= last

    def select(self, hash_value: int, begin: int, end: int) -> Iterator[int]:
        """Physical offsets of entries with that hash, newest first; time has the resolution of a second."""
        number = self.slots.get(hash_value % self.geometry.slots, 0)
        if not 0 < number <= self.next_entry or self.next_entry <= 1:
            return
        while True:
            entry = self.entries.get(number, Entry(0, 0, 0, 0))
            if entry.seconds < 0:
                return
            time = self.begin_timestamp + entry.seconds * 1000
            if entry.key_hash == hash_value and begin <= time <= end:
                yield entry.physical_offset
            if not 0 < entry.previous <= self.next_entry or entry.previous == number or time < begin:
                return
            number = entry.previous

    def encode(self) -> bytes:
        data = bytearray(self.geometry.file_size)
        header = (self.begin_timestamp, self.end_timestamp, self.begin_physical_offset, self.end_physical_offset)
        # a broker writes the count with the first entry: until then there is 0 on disk and 1 in its memory
        count = self.next_entry if self.entries else 0
        struct.pack_into(HEADER_LAYOUT, data, 0, *header, self.slots_used, count)
        for slot, number in self.slots.items():
            struct.pack_into(">i", data, HEADER_BYTES + 4 * slot, number)
        for number, entry in self.entries.items():
            struct.pack_into(ENTRY_LAYOUT, data, self._entry_at(number), *entry)
        return bytes(data)

    @staticmethod
    def decode(data: bytes, geometry: Geometry) -> IndexFile:
        file = IndexFile(geometry, *struct.unpack_from(HEADER_LAYOUT, data))
        file.next_entry = max(1, file.next_entry)
        numbers = struct.unpack_from(f">{geometry.slots}i", data, HEADER_BYTES)
        file.slots = {slot: number for slot, number in enumerate(numbers) if number}
        for number in range(1, min(file.next_entry, geometry.entries)):
            file.entries[number] = Entry(*struct.unpack_from(ENTRY_LAYOUT, data, file._entry_at(number)))
        return file

    def _entry_at(self, number: int) -> int:
        return HEADER_BYTES + 4 * self.geometry.slots + ENTRY_BYTES * number


@dataclass
class IndexService:
    """All index files of a store, oldest first, by name."""

    geometry: Geometry
    files: dict[str, IndexFile] = field(default_factory=dict)

    @staticmethod
    def read(directory: Path, geometry: Geometry) -> IndexService:
        names = sorted(path.name for path in directory.glob("*") if path.name.isdigit())
        files = {name: IndexFile.decode((directory / name).read_bytes(), geometry) for name in names}
        return IndexService(geometry, files)

    def query(self, topic: str, key: str, limit: int = MAX_RESULTS, begin: int = 0, end: int = MAX_TIME) -> list[int]:
        """Physical offsets, newest first; by hash alone, so that another key's may be among them."""
        found: list[int] = []
        limit = min(limit, MAX_RESULTS)
        for file in reversed(self.files.values()):
            if file.overlaps(begin, end):
                found += list(file.select(key_hash(topic, key), begin, end))[: limit - len(found)]
            if file.begin_timestamp < begin or len(found) >= limit:
                break
        return found

    def build(self, record: Record, file_name: str) -> None:
        """Indexes one record; `file_name` is for the file that this may start."""
        file = self._last_open(file_name)
        if record.physical_offset < file.end_physical_offset:
            return
        for key in keys_of(record):
            hash_value = key_hash(record.topic, key)
            while not file.put_key(hash_value, record.physical_offset, record.store_timestamp):
                file = self._last_open(file_name)

    def _last_open(self, file_name: str) -> IndexFile:
        last = list(self.files.values())[-1] if self.files else None
        if last and not last.is_full:
            return last
        while file_name in self.files:
            file_name = f"{int(file_name) + 1:017d}"
        self.files[file_name] = last.successor() if last else IndexFile(self.geometry)
        return self.files[file_name]
