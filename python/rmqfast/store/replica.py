"""A store directory that is a copy of a master's: it takes the master's log, and lists it as the master does."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple, Self

from rmqfast._native import cut_copy, newest_copy
from rmqfast.paths import is_directory, list_directory
from rmqfast.store.append_options import AppendOptions
from rmqfast.store.retention import RetentionOptions
from rmqfast.store.writer import WritableStore

__all__ = ["CopiedQueue", "Replica", "newest_copy"]


class CopiedQueue(NamedTuple):
    """A queue of a copy.

    Attributes:
        next_offset: The queue offset that its next message would have.
    """

    topic: str
    queue_id: int
    next_offset: int


class Replica:
    """A copy of a master's store, open for its log; nobody else may append to it, and it takes no messages.

    Args:
        path: Its directory; made where it is not there.
        options: Sizes, which are those of the master.
        begin: Where a new copy begins: an offset of the log at which one of its files does.
        retention: How long its files stay, whatever the master's do; for ever without.

    Attributes:
        store: The store, to be read.
        topics: The topics that it keeps; none where it has all of the log.

    Raises:
        StoreBusyError: Another process has it.
        UnsupportedStoreError: Neither empty nor a store.
        ArgumentError: `begin` is no multiple of the size of a file.

    Example:
        >>> directory = getfixture("tmp_path") / "copy"
        >>> sizes = AppendOptions(file_size=1 << 20, index_slots=1000, index_entries=4000)
        >>> with Replica(directory, sizes, begin=3 << 20) as copy:
        ...     copy.bounds
        (3145728, 3145728)

    Source: `DefaultMessageStore.appendToCommitLog`.
    """

    topics: tuple[str, ...] = ()

    def __init__(
        self, path: Path, options: AppendOptions, *, begin: int = 0, retention: RetentionOptions | None = None
    ) -> None:
        self.path = path
        self.store: Final = WritableStore(path, options, retention=retention, replica_from=begin)

    @property
    def bounds(self) -> tuple[int, int]:
        """Of what part of its master's log it is a copy: offset of the first byte, and that behind the last record."""
        return self.store.appender.log_bounds()

    @property
    def is_empty(self) -> bool:
        """Whether its log has nothing."""
        begin, end = self.store.appender.log_bounds()
        return begin == end

    @property
    def file_size(self) -> int:
        """Bytes of a file of its log."""
        return self.store.appender.log_file_size()

    def compare_from(self, end: int, most: int) -> int:
        """Where to compare it with its master's log from.

        Args:
            end: Up to where both have bytes.
            most: Bytes before that at most, unless a record is longer: it begins at a record.
        """
        return self.store.appender.compare_from(end, most)

    def queues(self) -> list[CopiedQueue]:
        """Its queues."""
        live = self.store.live
        topics = [path for path in list_directory(self.path / "consumequeue") if is_directory(path)]
        names = [(topic.name, int(path.name)) for topic in topics for path in list_directory(topic)]
        return [CopiedQueue(*name, live.queue_bounds(*name)[1]) for name in names]

    def remove_ended(self, queues: Iterable[CopiedQueue]) -> list[tuple[str, int]]:
        """Removes queues that the master has no more, as their topics were deleted and made again.

        Args:
            queues: As they were seen; one that went on since is left.

        Returns:
            Topic and number of those that were removed.
        """
        ended = [((queue.topic, queue.queue_id), queue.next_offset) for queue in queues]
        return self.store.appender.remove_ended_queues(ended) if ended else []

    def close(self) -> None:
        """Writes what is not on the disk, and gives the directory up."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @staticmethod
    def cut(path: Path, at: int, options: AppendOptions) -> int:
        """Cuts a copy that nobody has open, behind its last record that ends at `at` or before.

        Returns:
            Where its log ends then.

        Raises:
            StoreBusyError: Somebody has it open.

        Source: `AutoSwitchHAService.truncateInvalidMsg`.
        """
        return cut_copy(os.fspath(path), at, options.completed(), progress=None)
