"""The queue offset for a point in time, by the rule of 4.9 and by that of 5.x.

Source: ConsumeQueue.getOffsetInQueueByTime, MappedFileQueue.getMappedFileByTime (4.9.4);
ConsumeQueueStore.getOffsetInQueueByTime (5.x).
"""

from __future__ import annotations

from .commit_log import CommitLog
from .consume_queue import UNIT_BYTES, ConsumeQueue, Unit


def search_offset_4(log: CommitLog, queue: ConsumeQueue, timestamp: int) -> int:
    """The message nearest to `timestamp` (ms), the earlier of two that are as near, within one file.

    The file is the first whose modification time is not before `timestamp`, else the last: files that were copied give
    other answers. Where several messages have just that time it is any of them, and after the end it is the last one.
    """
    if not queue.files:
        return 0
    file = next((start for start in sorted(queue.files) if queue.mtimes[start] >= timestamp), max(queue.files))
    found = _nearest_4(log, queue, file, timestamp)
    # Java's division cuts towards zero: byte -1, nothing found, is unit 0 in the first file
    return 0 if found is None else max(0, file + found) // UNIT_BYTES


def search_offset_5(log: CommitLog, queue: ConsumeQueue, timestamp: int, upper: bool = False) -> int:
    """The first message not before `timestamp` (ms), the max offset where there is none; with `upper` the last one not
    after it, else 0; never outside of [min offset, max offset]. Store times are taken to rise.
    """
    times = [(offset, _store_time(log, unit)) for offset, unit in queue.units()]
    if upper:
        found = max((offset for offset, time in times if 0 <= time <= timestamp), default=0)
    else:
        found = min((offset for offset, time in times if time >= max(0, timestamp)), default=queue.max_offset)
    return min(max(found, queue.min_offset(log.min_offset)), queue.max_offset)


def _nearest_4(log: CommitLog, queue: ConsumeQueue, file: int, timestamp: int) -> int | None:
    """The byte in the file, -1 for nothing; None where a message cannot be read, which ends the search at 0."""
    units = queue.files[file]
    low = max(0, queue.min_offset(log.min_offset) * UNIT_BYTES - file)
    high = min(queue.max_offset * UNIT_BYTES - file, queue.file_size) - UNIT_BYTES
    left = right = left_time = right_time = -1
    while high >= low:
        middle = (low + high) // (2 * UNIT_BYTES) * UNIT_BYTES
        unit = units[middle // UNIT_BYTES]
        if unit.physical_offset < log.min_offset:
            left, low = middle, middle + UNIT_BYTES
            continue
        time = _store_time(log, unit)
        if time < 0:
            return None
        if time == timestamp:
            return middle
        if time > timestamp:
            right, right_time, high = middle, time, middle - UNIT_BYTES
        else:
            left, left_time, low = middle, time, middle + UNIT_BYTES
    if left_time == -1:
        return right
    if right_time == -1:
        return left
    return right if abs(timestamp - left_time) > abs(right_time - timestamp) else left


def _store_time(log: CommitLog, unit: Unit) -> int:
    """-1 where the message cannot be read (`CommitLog.pickupStoreTimestamp`)."""
    record = log.message_at(unit.physical_offset) if unit.is_valid and not unit.is_pre_blank else None
    return record.store_timestamp if record else -1
