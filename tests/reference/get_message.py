"""What a broker answers to a pull: status, messages, and the offset to ask for next.

Source: DefaultMessageStore.getMessage (4.9.4), for a store that lies in memory as a whole.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from enum import StrEnum, auto

from .commit_log import CommitLog
from .consume_queue import UNIT_BYTES, ConsumeQueue, Unit, java_hash
from .record import Record

MAX_COUNT_IN_MEMORY = 32
MAX_BYTES_IN_MEMORY = 262_144
MIN_SCAN_BYTES = 16_000


class Status(StrEnum):
    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[str]) -> str:
        return name

    FOUND = auto()
    NO_MATCHED_MESSAGE = auto()
    MESSAGE_WAS_REMOVING = auto()
    OFFSET_FOUND_NULL = auto()
    OFFSET_OVERFLOW_BADLY = auto()
    OFFSET_OVERFLOW_ONE = auto()
    OFFSET_TOO_SMALL = auto()
    NO_MESSAGE_IN_QUEUE = auto()


@dataclass(frozen=True)
class GetMessageResult:
    status: Status
    next_begin_offset: int
    min_offset: int
    max_offset: int
    records: list[Record]


def get_message(
    log: CommitLog, queue: ConsumeQueue, offset: int, max_messages: int = 32, tags: str = "*"
) -> GetMessageResult:
    """Messages from queue offset `offset` on. Tags match by hash alone, as they do in a broker.

    A unit whose message is gone with its file makes the scan go on at the next file of the commit log; one that leads
    to something else than its message is passed over, alone.
    """
    low, high = queue.min_offset(log.min_offset), queue.max_offset
    refused = _refusal(queue, offset, low, high)
    if refused:
        return GetMessageResult(*refused, low, high, [])
    scan = _Scan(log, queue, max_messages, _codes(tags))
    scanned = scan.run(offset)
    return GetMessageResult(scan.status, offset + scanned, low, high, scan.records)


def _refusal(queue: ConsumeQueue, offset: int, low: int, high: int) -> tuple[Status, int] | None:
    if high == 0:
        return Status.NO_MESSAGE_IN_QUEUE, 0
    if offset < low:
        return Status.OFFSET_TOO_SMALL, low
    if offset == high:
        return Status.OFFSET_OVERFLOW_ONE, offset
    if offset > high:
        return Status.OFFSET_OVERFLOW_BADLY, high
    if queue.file_of(offset) is None:
        return Status.OFFSET_FOUND_NULL, offset + queue.units_per_file - offset % queue.units_per_file
    return None


class _Scan:
    def __init__(self, log: CommitLog, queue: ConsumeQueue, max_messages: int, codes: set[int] | None) -> None:
        self.log, self.queue, self.max_messages, self.codes = log, queue, max_messages, codes
        self.status, self.records, self.total_bytes = Status.NO_MATCHED_MESSAGE, list[Record](), 0
        self.skip_until = 0

    def run(self, offset: int) -> int:
        """Scans units up to the end of their file; returns how many."""
        limit = max(MIN_SCAN_BYTES, self.max_messages * UNIT_BYTES)
        for scanned, (queue_offset, unit) in enumerate(self.queue.from_offset(offset)):
            if scanned * UNIT_BYTES >= limit:
                return scanned
            if unit.physical_offset < self.skip_until:
                continue
            if self._is_full(unit.size):
                return scanned
            self._visit(queue_offset, unit)
        return len(self.queue.from_offset(offset))

    def _is_full(self, next_size: int) -> bool:
        if not self.records:
            return False
        too_many = len(self.records) >= min(self.max_messages, MAX_COUNT_IN_MEMORY)
        return too_many or self.total_bytes + next_size > MAX_BYTES_IN_MEMORY

    def _visit(self, queue_offset: int, unit: Unit) -> None:
        if self.codes is not None and ctypes.c_int32(unit.tags_code).value not in self.codes:
            self._miss(Status.NO_MATCHED_MESSAGE)
            return
        start = unit.physical_offset // self.log.file_size * self.log.file_size
        if start not in self.log.files:
            self.skip_until = start + self.log.file_size
            self._miss(Status.MESSAGE_WAS_REMOVING)
            return
        record = self.log.message_at(unit.physical_offset)
        if record is None or not _leads_to(self.queue, queue_offset, unit, record):
            self._miss(Status.MESSAGE_WAS_REMOVING)
            return
        self.status, self.skip_until = Status.FOUND, 0
        self.records.append(record)
        self.total_bytes += record.store_size

    def _miss(self, reason: Status) -> None:
        if not self.records:
            self.status = reason


def _leads_to(queue: ConsumeQueue, queue_offset: int, unit: Unit, record: Record) -> bool:
    expected = (queue.topic, queue.queue_id, queue_offset, unit.size)
    return (record.topic, record.queue_id, record.queue_offset, record.store_size) == expected


def _codes(tags: str) -> set[int] | None:
    """The hash codes of "A || B"; None for everything. Source: FilterAPI.buildSubscriptionData."""
    if tags.strip() in ("", "*"):
        return None
    return {java_hash(tag.strip()) for tag in tags.split("||") if tag.strip()}
