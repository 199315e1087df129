"""The start of a new mirror. It is the start of a log file, since the files of the copy have the same names."""

from __future__ import annotations

from datetime import UTC, datetime

from rmqfast.admin.admin_client import AdminClient
from rmqfast.client.instance.broker_requests import decode_viewed
from rmqfast.errors import ArgumentError
from rmqfast.mirror.options import MirrorOptions
from rmqfast.mirror.source import LogBounds, Source


def first_offset(client: AdminClient, source: Source, bounds: LogBounds, options: MirrorOptions) -> int:
    """Returns the offset at which a new mirror starts. Raises `ArgumentError` if the log does not have it."""
    size, start = source.log.file_size, options.start
    last = max(bounds.end - 1, bounds.begin) // size * size
    if isinstance(start, datetime):
        return _before(client, source, range(bounds.begin, last + 1, size), start)
    if isinstance(start, str):
        return bounds.begin if start == "earliest" else last
    if not bounds.begin <= start <= bounds.end:
        raise ArgumentError(f"start: expected an offset of the log, {bounds.begin} to {bounds.end}, got {start}")
    return min(start // size * size, last)


def _before(client: AdminClient, source: Source, files: range, when: datetime) -> int:
    """Returns the last log file whose first message was stored before `when`, or else the first log file."""
    aware = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    wanted = round(aware.timestamp() * 1000)
    low, high = 0, len(files) - 1
    while low < high:
        middle = (low + high + 1) // 2
        record = client.api.view_message(source.address, files[middle], timeout=client.timeout)
        if decode_viewed(record, files[middle], source.broker_name).store_timestamp < wanted:
            low = middle
        else:
            high = middle - 1
    return files[low]
