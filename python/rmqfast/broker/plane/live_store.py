"""A store that is written to, as those see it who read single messages of it."""

from __future__ import annotations

from typing import Protocol


class LiveStore(Protocol):
    """Bounds, units and raw records, right behind the last append.

    Source: `MessageStore`.
    """

    def queue_bounds(self, topic: str, queue_id: int) -> tuple[int, int]:
        """Queue offsets of the first message that is still there and behind the last one; 0, 0 without a queue."""

    def unit(self, topic: str, queue_id: int, queue_offset: int) -> tuple[int, int, int] | None:
        """Physical offset, size in bytes and tags code of a message; None where the queue has none."""

    def record(self, physical_offset: int) -> bytes | None:
        """The record that starts at a physical offset, as it stands in the commit log; None where there is none."""

    def store_time(self, topic: str, queue_id: int, queue_offset: int) -> int:
        """When a message was stored, in milliseconds since 1970; -1 where there is none."""

    def offset_for_time(self, topic: str, queue_id: int, when: int) -> int:
        """The queue offset for a store time in milliseconds, by the rule of 4.9.4."""

    def query(self, topic: str, key: str, max_num: int, begin: int, end: int) -> tuple[list[bytes], int, int]:
        """Records of a topic that have a key, stored from `begin` to `end`; last update and end of the index."""

    def log_bounds(self) -> tuple[int, int]:
        """The physical offset at which the commit log begins and the one at which it ends."""

    def earliest_store_time(self, topic: str | None, queue_id: int | None) -> int:
        """The store time of the first message of a queue, or of the log, that is still there; -1 without one."""
