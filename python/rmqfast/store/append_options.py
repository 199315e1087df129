"""File sizes and limits of a store that is opened for appending.

Source: RocketMQ's `MessageStoreConfig`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from rmqfast.arguments import check_fields, suggests_names

#: RocketMQ's default delays in seconds, from level 1.
SHIPPED_DELAY_LEVELS = (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)


@suggests_names
@dataclass(frozen=True, kw_only=True)
class AppendOptions:
    """Sizes and limits of a store that is opened for appending. File sizes only apply to new stores.

    Args:
        flush: "async" or "sync", see `open_store`.
        file_size: Bytes of a commit-log file (`mappedFileSizeCommitLog`).
        queue_file_size: Bytes of a consume-queue file (`mappedFileSizeConsumeQueue`).
        index_slots: Hash slots of an index file (`maxHashSlotNum`).
        index_entries: Entries of an index file (`maxIndexNum`).
        max_message_size: Largest body in bytes (`maxMessageSize`).
        store_host: `ip:port` or `[ip6]:port` that is stored in records as store host and default born host.
        long_topics: Write V2 records, which 5.x reads, for retry topics of 128 to 255 bytes
            (`autoMessageVersionOnTopicLen`). 4.9.4 takes a V2 record for the end of the log.
        property_crc: Append a CRC of the record to its properties, as 5.x can (`enabledAppendPropCRC`).
        multi_dispatch: Also list a message in the queues that its property INNER_MULTI_DISPATCH names, such as
            `%LMQ%a,%LMQ%b` (`enableMultiDispatch`, `enableLmq`).
        max_lmq_queues: Maximum number of light message queues (`maxLmqConsumeQueueNum`).
        sync_flush_timeout: Seconds that a sync append waits for a flush (`syncFlushTimeout`).
        busy_after: Seconds that an append may hold the log before other appends are refused
            (`osPageCacheBusyTimeOutMills`). None: the other appends wait.
        delay_levels: Seconds of each delay level, from level 1 (`messageDelayLevel`), 1 to 32 levels. Readers of a log
            whose end is not in the consume queues yet only know RocketMQ's default levels.
        zone_offset_ms: Offset of local time from UTC in milliseconds, used in names of index files. Default: the
            system's.
        file_permission: Mode of new files, regardless of the umask; directories also get the matching execute bits.
            Existing files keep their mode.
    """

    flush: Literal["async", "sync"] = "async"
    file_size: int = 1 << 30
    # 300,000 units of 20 bytes, as RocketMQ
    queue_file_size: int = 300_000 * 20
    index_slots: int = 5_000_000
    index_entries: int = 20_000_000
    max_message_size: int = 4 << 20
    store_host: str = "127.0.0.1:10911"
    long_topics: bool = False
    property_crc: bool = False
    multi_dispatch: bool = False
    max_lmq_queues: int = 20_000
    sync_flush_timeout: float = 5.0
    busy_after: float | None = None
    delay_levels: tuple[int, ...] = SHIPPED_DELAY_LEVELS
    zone_offset_ms: int | None = None
    # only the owner: messages may be confidential
    file_permission: int = 0o600

    def __post_init__(self) -> None:
        check_fields(self)

    def with_flush(self, flush: Literal["async", "sync"] | None) -> AppendOptions:
        """Returns a copy with the given `flush`. With None, returns these options unchanged."""
        return self if flush is None else replace(self, flush=flush)

    def with_system_values(self) -> AppendOptions:
        """Returns a copy in which fields that are None have this system's values."""
        return self if self.zone_offset_ms is not None else replace(self, zone_offset_ms=zone_offset_ms())


def zone_offset_ms() -> int:
    offset = datetime.now().astimezone().utcoffset()
    return round(offset.total_seconds() * 1000) if offset else 0
