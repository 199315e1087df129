"""Consume queues: `consumequeue/<topic>/<queueId>/<20 digits>`, units of 20 bytes.

    physical offset i64, size i32, tags code i64

Source: ConsumeQueue, MessageExtBrokerInner.tagsString2tagsCode, ScheduleMessageService.computeDeliverTimestamp.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from . import properties
from .record import Record

UNIT_BYTES = 20
PRE_BLANK_SIZE = 0x7FFFFFFF
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
_UNIT_MILLIS = {"s": 1_000, "m": 60_000, "h": 3_600_000}
DELAY_MILLIS = [int(level[:-1]) * _UNIT_MILLIS[level[-1]] for level in DELAY_LEVELS.split()]


class Unit(NamedTuple):
    physical_offset: int
    size: int
    tags_code: int

    def encode(self) -> bytes:
        return struct.pack(">qiq", *self)

    @property
    def is_valid(self) -> bool:
        """Offset 0 is a legal physical offset, so it is the size that tells an empty unit."""
        return self.physical_offset >= 0 and self.size > 0

    @property
    def is_pre_blank(self) -> bool:
        return self == PRE_BLANK


PRE_BLANK = Unit(0, PRE_BLANK_SIZE, 0)


def java_hash(text: str) -> int:
    """`String.hashCode`: 31*h + c over UTF-16 code units, wrapped to a signed 32-bit number."""
    value = 0
    for (code_unit,) in struct.iter_unpack(">H", text.encode("utf-16-be")):
        value = (31 * value + code_unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def tags_code(record: Record) -> int:
    """The hash of the tags, or the time of delivery in milliseconds in the queues of delayed messages."""
    delay = record.properties.get(properties.DELAY)
    if record.topic == SCHEDULE_TOPIC and delay is not None and int(delay) > 0:
        level = min(int(delay), len(DELAY_MILLIS))
        return record.store_timestamp + DELAY_MILLIS[level - 1]
    tags = record.tags
    return java_hash(tags) if tags else 0


def unit_of(record: Record) -> Unit:
    return Unit(record.physical_offset, record.store_size, tags_code(record))


@dataclass
class ConsumeQueue:
    """The files of one queue: `files` maps the first byte's offset in the queue to the units of the file.

    `mtimes` are in milliseconds since 1970.
    """

    topic: str
    queue_id: int
    file_size: int
    files: dict[int, list[Unit]] = field(default_factory=dict)
    mtimes: dict[int, int] = field(default_factory=dict)

    @property
    def units_per_file(self) -> int:
        return self.file_size // UNIT_BYTES

    @property
    def max_offset(self) -> int:
        """One past the last valid unit, counted as `ConsumeQueue.recover` does, from the third file from the end on."""
        end = 0
        for start in sorted(self.files)[-3:]:
            valid = _leading_valid(self.files[start])
            end = start // UNIT_BYTES + valid
            if valid < self.units_per_file:
                break
        return end

    def min_offset(self, min_physical_offset: int) -> int:
        """The first unit whose message is still in the commit log; pre-blank units do not count.

        `max_offset` where no unit leads there: 5.x says so, 4.9 keeps an older value in memory.
        """
        for offset, unit in self.units():
            if not unit.is_pre_blank and unit.physical_offset >= min_physical_offset:
                return offset
        return self.max_offset

    def units(self) -> Iterator[tuple[int, Unit]]:
        """Queue offset and unit, up to `max_offset`."""
        for start in sorted(self.files):
            first = start // UNIT_BYTES
            yield from enumerate(self.files[start][: max(0, self.max_offset - first)], first)

    def file_of(self, offset: int) -> int | None:
        """The start of the file that holds queue offset `offset`."""
        start = offset * UNIT_BYTES // self.file_size * self.file_size
        return start if start in self.files else None

    def from_offset(self, offset: int) -> list[tuple[int, Unit]]:
        """Units from `offset` to the end of that one file, as `ConsumeQueue.getIndexBuffer` gives them."""
        start = self.file_of(offset)
        if start is None:
            return []
        first = start // UNIT_BYTES
        units = self.files[start][: max(0, self.max_offset - first)]
        return list(enumerate(units, first))[offset - first :]


def read(directory: Path, topic: str, queue_id: int) -> ConsumeQueue:
    """The queue whose files are in `directory`."""
    paths = sorted(path for path in directory.iterdir() if path.name.isdigit() and path.stat().st_size)
    queue = ConsumeQueue(topic, queue_id, paths[0].stat().st_size if paths else 0)
    for path in paths:
        data = path.read_bytes()
        queue.files[int(path.name)] = [Unit(*values) for values in struct.iter_unpack(">qiq", data)]
        queue.mtimes[int(path.name)] = path.stat().st_mtime_ns // 1_000_000
    return queue


def _leading_valid(units: list[Unit]) -> int:
    for count, unit in enumerate(units):
        if not unit.is_valid:
            return count
    return len(units)
