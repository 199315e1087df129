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
    """A queue of a copy.

    Attributes:
        next_offset: The queue offset that its next message would have.
    """

    topic: str
    queue_id: int
    next_offset: int


class Replica:
    """A copy of a master's store, open to receive its log; this process owns it, and it takes no messages.

    Attributes:
        store: The store, to be read.
        topics: The topics that it keeps; none where it has all of the log.
    """

    topics: tuple[str, ...] = ()

    def __init__(
        self, path: Path, options: AppendOptions, *, begin: int = 0, retention: RetentionOptions | None = None
    ) -> None:
        self.path = path
        self.store: Final = WritableStore(path, options, retention=retention, replica_from=begin)

    @property
    def bounds(self) -> tuple[int, int]:
        """The begin and end offsets of its part of the master's log."""
        return self.store.appender.log_bounds()

    @property
    def is_empty(self) -> bool:
        begin, end = self.store.appender.log_bounds()
        return begin == end

    @property
    def file_size(self) -> int:
        return self.store.appender.log_file_size()

    def compare_from(self, end: int, most: int) -> int:
        """The offset from which to compare it with its master's log."""
        return self.store.appender.compare_from(end, most)

    def queues(self) -> list[CopiedQueue]:
        live = self.store.live
        topics = [path for path in list_directory(self.path / "consumequeue") if is_directory(path)]
        names = [(topic.name, int(path.name)) for topic in topics for path in list_directory(topic)]
        return [CopiedQueue(*name, live.queue_bounds(*name)[1]) for name in names]

    def remove_ended(self, queues: Iterable[CopiedQueue]) -> list[tuple[str, int]]:
        """Removes queues that the master lacks, as their topics were deleted and made again."""
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
        """Cuts a copy that is not open after its last record that ends at `at` or before."""
        return cut_copy(os.fspath(path), at, options.with_system_values(), progress=None)


class TopicReplica(Replica):
    """A copy of some topics. Messages keep their queue offsets; a mark file holds the position in the master's log."""

    def __init__(
        self,
        path: Path,
        options: AppendOptions,
        topics: Sequence[str],
        *,
        begin: int | None = None,
        retention: RetentionOptions | None = None,
    ) -> None:
        # as an export's log: units that lead nowhere would have a broker skip what stands in a first file at 0
        super().__init__(path, options, begin=options.file_size, retention=retention)
        self.topics: tuple[str, ...] = tuple(topics)
        if begin is not None:
            try:
                begin_mark(os.fspath(path), begin, self.store.appender.log_bounds()[1])
            except BaseException:
                self.close()
                raise

    @staticmethod
    def has_mark(path: Path) -> bool:
        """Whether the directory is a copy of some topics."""
        return load_mark(os.fspath(path)) is not None

    @staticmethod
    def is_begun(path: Path) -> bool:
        """Whether it is such a copy, and took anything of its master's log."""
        position, compare_from = load_mark(os.fspath(path)) or (0, 0)
        return position > compare_from

    @property
    def bounds(self) -> tuple[int, int]:
        """The offsets of the master's log from which to compare and up to which it was taken."""
        mark = load_mark(os.fspath(self.path))
        if mark is None:
            raise StoreError(f"{self.path}: its mark was removed; begin a new copy in another directory")
        position, compare_from = mark
        return compare_from, position

    def compare_from(self, end: int, most: int) -> int:
        """The offset from which to ask for the master's log: the mark has it."""
        del end, most
        return self.bounds[0]
