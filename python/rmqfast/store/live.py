"""Reads raw records of a store to which this process appends, up to the last append.

Source: RocketMQ's `DefaultMessageStore`, `ConsumeQueue`.
"""

from __future__ import annotations

from rmqfast._native import Appender
from rmqfast.pickling import not_picklable


@not_picklable("open the store where it is used")
class LiveStore:
    """Queue bounds, consume-queue entries and raw records of an open `WritableStore`: see `WritableStore.live`.

    Reads never wait for appends. A missing topic or queue counts as empty. Threads may share it, forks may not. After
    `close` it still shows the final state. All methods raise StoreIOError if the operating system refuses, and
    ForkError in a forked process.

    Example:
        >>> import rmqfast
        >>> small = rmqfast.AppendOptions(file_size=1 << 20, index_slots=1000, index_entries=4000)
        >>> with rmqfast.open_store(getfixture("tmp_path") / "live", mode="a", options=small) as store:
        ...     place = store.append(rmqfast.Message("orders", b"paid", keys="42"))
        ...     record = store.live.record(place.physical_offset)
        ...     store.live.query("orders", "42", 32, 0, 1 << 62)[0] == [record]
        True
    """

    def __init__(self, appender: Appender) -> None:
        self._appender = appender

    def queue_bounds(self, topic: str, queue_id: int) -> tuple[int, int]:
        """Returns the offset of a queue's first message, and the offset after its last. 0, 0 if there is no queue."""
        return self._appender.queue_bounds(topic, queue_id)

    def unit(self, topic: str, queue_id: int, queue_offset: int) -> tuple[int, int, int] | None:
        """Returns a consume-queue entry: physical offset, size in bytes, tag hash. None if it does not exist."""
        return self._appender.unit(topic, queue_id, queue_offset)

    def record(self, physical_offset: int) -> bytes | None:
        """Returns the raw record at a physical offset. None if no record starts there."""
        return self._appender.record(physical_offset)

    def store_time(self, topic: str, queue_id: int, queue_offset: int) -> int:
        """Returns the store time of a message in milliseconds since 1970. -1 if it does not exist."""
        return self._appender.store_time(topic, queue_id, queue_offset)

    def offset_for_time(self, topic: str, queue_id: int, when: int) -> int:
        """Returns the queue offset for a store time in milliseconds, as 4.9.4 computes it. 0 if there is no queue."""
        return self._appender.offset_for_time(topic, queue_id, when)

    def query(self, topic: str, key: str, max_num: int, begin: int, end: int) -> tuple[list[bytes], int, int]:
        """Returns the newest records with a key that the index lists, and the last entry of the index.

        Records of other keys with the same hash are included, so callers must compare. Messages that are not indexed
        are not found.

        Returns:
            Records by physical offset; then store time in milliseconds and physical offset of the index's last entry,
            both 0 if nothing was found.
        """
        return self._appender.query(topic, key, max_num, (begin, end))

    def log_bounds(self) -> tuple[int, int]:
        """Returns the physical offsets of the begin and the end of the commit log."""
        return self._appender.log_bounds()

    def earliest_store_time(self, topic: str | None = None, queue_id: int | None = None) -> int:
        """Returns the store time of the first message of a queue, topic or log in milliseconds. -1 if there is none."""
        return self._appender.earliest_store_time(topic, queue_id)
