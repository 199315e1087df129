"""A store directory that is a copy of a master's store.

Source: RocketMQ's `DefaultMessageStore`, `AutoSwitchHAService`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

from rmqfast._native import begin_mark, cut_copy, load_mark, newest_copy
from rmqfast.errors import StoreError
from rmqfast.paths import is_directory, list_directory
from rmqfast.store.append_options import AppendOptions
from rmqfast.store.retention import RetentionOptions
from rmqfast.store.writer import WritableStore

__all__ = ["CopiedQueue", "Replica", "TopicReplica", "newest_copy"]


class CopiedQueue(NamedTuple):
    """A queue of a copy. `next_offset` is the queue offset of its next message."""

    topic: str
    queue_id: int
    next_offset: int


class Replica:
    """A copy of a master's store, opened to receive the master's log. It accepts no messages of producers.

    Attributes:
        store: The store, for reading.
        topics: The topics that it copies; empty if it copies the whole log.
    """

    topics: tuple[str, ...] = ()

    def __init__(
        self, path: Path, options: AppendOptions, *, begin: int = 0, retention: RetentionOptions | None = None
    ) -> None:
        self.path = path
        self.store: Final = WritableStore(path, options, retention=retention, replica_from=begin)

    @property
    def bounds(self) -> tuple[int, int]:
        """Returns the begin and the end of the copy's part of the master's log."""
        return self.store.appender.log_bounds()

    @property
    def is_empty(self) -> bool:
        begin, end = self.store.appender.log_bounds()
        return begin == end

    @property
    def file_size(self) -> int:
        return self.store.appender.log_file_size()

    def compare_from(self, end: int, most: int) -> int:
        """Returns the position from which the copy is compared with its master's log."""
        return self.store.appender.compare_from(end, most)

    def queues(self) -> list[CopiedQueue]:
        live = self.store.live
        topics = [path for path in list_directory(self.path / "consumequeue") if is_directory(path)]
        # one directory per topic, with one per queue id
        names = [(topic.name, int(path.name)) for topic in topics for path in list_directory(topic)]
        return [CopiedQueue(*name, live.queue_bounds(*name)[1]) for name in names]

    def remove_ended(self, queues: Iterable[CopiedQueue]) -> list[tuple[str, int]]:
        """Removes and returns queues that the master no longer has, as their topics were deleted and created again."""
        ended = [((queue.topic, queue.queue_id), queue.next_offset) for queue in queues]
        return self.store.appender.remove_ended_queues(ended) if ended else []

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @staticmethod
    def cut(path: Path, at: int, options: AppendOptions) -> int:
        """Cuts the log of a closed copy after the last record that ends at or before `at`. Returns the new end."""
        return cut_copy(os.fspath(path), at, options.with_system_values(), progress=None)


class TopicReplica(Replica):
    """A copy of some topics. Messages keep their queue offsets; a mark file has the position in the master's log."""

    def __init__(
        self,
        path: Path,
        options: AppendOptions,
        topics: Sequence[str],
        *,
        begin: int | None = None,
        retention: RetentionOptions | None = None,
    ) -> None:
        # as in an export, not 0: at units without a record, a broker would skip the messages of a first file at 0
        super().__init__(path, options, begin=options.file_size, retention=retention)
        self.topics: tuple[str, ...] = tuple(topics)
        if begin is not None:
            try:
                begin_mark(os.fspath(path), begin, self.store.appender.log_bounds()[1])
            except BaseException:
                # releases the lock of the store
                self.close()
                raise

    @staticmethod
    def has_mark(path: Path) -> bool:
        """Whether the directory contains a copy of some topics."""
        return load_mark(os.fspath(path)) is not None

    @staticmethod
    def is_begun(path: Path) -> bool:
        """Whether the directory contains a copy of some topics that has received records of its master."""
        # (0, 0): there is no mark file
        position, compare_from = load_mark(os.fspath(path)) or (0, 0)
        return position > compare_from

    @property
    def bounds(self) -> tuple[int, int]:
        """Returns two positions of the master's log: from where to compare, and up to where records were received."""
        mark = load_mark(os.fspath(self.path))
        if mark is None:
            raise StoreError(f"{self.path}: its mark was removed; begin a new copy in another directory")
        position, compare_from = mark
        return compare_from, position

    def compare_from(self, end: int, most: int) -> int:
        """Returns the position from which to request the master's log. The mark file contains it."""
        # not needed: the mark file has the offset
        del end, most
        return self.bounds[0]
