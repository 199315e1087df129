"""A store that is written to, as a broker reads single messages of it: raw, and right behind the last append."""

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

    Source: `DefaultMessageStore`.
    """

    def __init__(self, appender: Appender) -> None:
        self._appender = appender

    def queue_bounds(self, topic: str, queue_id: int) -> tuple[int, int]:
        """Queue offsets of the first message that is still there and behind the last one; 0, 0 without a queue.

        Source: `DefaultMessageStore.getMinOffsetInQueue`, `getMaxOffsetInQueue`.
        """
        return self._appender.queue_bounds(topic, queue_id)

    def unit(self, topic: str, queue_id: int, queue_offset: int) -> tuple[int, int, int] | None:
        """Physical offset, size in bytes and tags code of a message; None where the queue has none.

        Source: `ConsumeQueue.getIndexBuffer`.
        """
        return self._appender.unit(topic, queue_id, queue_offset)

    def record(self, physical_offset: int) -> bytes | None:
        """The record that starts at a physical offset, as it stands in the commit log; None where there is none.

        Source: `DefaultMessageStore.selectOneMessageByOffset`.
        """
        return self._appender.record(physical_offset)

    def store_time(self, topic: str, queue_id: int, queue_offset: int) -> int:
        """When a message was stored, in milliseconds since 1970; -1 where there is none.

        Source: `DefaultMessageStore.getMessageStoreTimeStamp`.
        """
        return self._appender.store_time(topic, queue_id, queue_offset)

    def offset_for_time(self, topic: str, queue_id: int, when: int) -> int:
        """The queue offset for a store time in milliseconds, by the rule of 4.9.4; 0 without a queue.

        Source: `ConsumeQueue.getOffsetInQueueByTime`.
        """
        return self._appender.offset_for_time(topic, queue_id, when)

    def query(self, topic: str, key: str, max_num: int, begin: int, end: int) -> tuple[list[bytes], int, int]:
        """Records that the index has under a key, the newest; then what the index says of its last entry.

        Other keys of the same hash are among them: who asks compares. A message without an entry is not found.

        Returns:
            Records by physical offset; store time in milliseconds and physical offset of the index's last entry, both 0
            where nothing was found.

        Source: `DefaultMessageStore.queryMessage`.
        """
        return self._appender.query(topic, key, max_num, (begin, end))

    def log_bounds(self) -> tuple[int, int]:
        """The physical offset at which the commit log begins and the one at which it ends.

        Source: `DefaultMessageStore.getMinPhyOffset`, `getMaxPhyOffset`.
        """
        return self._appender.log_bounds()

    def earliest_store_time(self, topic: str | None = None, queue_id: int | None = None) -> int:
        """Store time in milliseconds of the first message of a queue, a topic or the log that is there; -1 without one.

        Source: `DefaultMessageStore.getEarliestMessageTime`.
        """
        return self._appender.earliest_store_time(topic, queue_id)
