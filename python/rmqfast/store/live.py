"""Single raw records of a store that is written, right after the last append.

Source: RocketMQ's `DefaultMessageStore`, `ConsumeQueue`.
"""

from __future__ import annotations

from rmqfast._native import Appender
from rmqfast.pickling import not_picklable

__all__ = ["LiveStore"]


@not_picklable("open the store where it is used")
class LiveStore:
    """Bounds, units and raw records of an open `WritableStore`: see `WritableStore.live`.

    Nothing here waits for who appends. A topic or queue that does not exist is an empty one. After `close` it shows
    what was left. Threads may share it; a fork of the process may not use it.

    All of them raise StoreIOError where the operating system refuses, and ForkError in a fork.

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
        """The offset of a queue's first message, and that after its last; 0, 0 without a queue."""
        return self._appender.queue_bounds(topic, queue_id)

    def unit(self, topic: str, queue_id: int, queue_offset: int) -> tuple[int, int, int] | None:
        """The physical offset, size in bytes and tags code of a message; None for no message."""
        return self._appender.unit(topic, queue_id, queue_offset)

    def record(self, physical_offset: int) -> bytes | None:
        """The record at a physical offset, as it stands in the commit log; None for no record."""
        return self._appender.record(physical_offset)

    def store_time(self, topic: str, queue_id: int, queue_offset: int) -> int:
        """The store time of a message in milliseconds since 1970; -1 for no message."""
        return self._appender.store_time(topic, queue_id, queue_offset)

    def offset_for_time(self, topic: str, queue_id: int, when: int) -> int:
        """The queue offset for a store time in milliseconds, by the rule of 4.9.4; 0 without a queue."""
        return self._appender.offset_for_time(topic, queue_id, when)

    def query(self, topic: str, key: str, max_num: int, begin: int, end: int) -> tuple[list[bytes], int, int]:
        """The newest records that the index has under a key, and the index's last entry.

        Other keys of the same hash are among them: who asks compares. A message without an entry is not found.

        Returns:
            Records by physical offset; store time in milliseconds and physical offset of the index's last entry, both 0
            where nothing was found.
        """
        return self._appender.query(topic, key, max_num, (begin, end))

    def log_bounds(self) -> tuple[int, int]:
        """The physical offsets of the commit log's begin and end."""
        return self._appender.log_bounds()

    def earliest_store_time(self, topic: str | None = None, queue_id: int | None = None) -> int:
        """The store time of the first message of a queue, a topic or the log, in milliseconds; -1 without one."""
        return self._appender.earliest_store_time(topic, queue_id)
