"""A copy that keeps some topics of a master's log, at places of its own, as an export does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rmqfast._native import begin_mark, load_mark
from rmqfast.errors import StoreError
from rmqfast.store.append_options import AppendOptions
from rmqfast.store.replica import Replica
from rmqfast.store.retention import RetentionOptions

__all__ = ["TopicReplica"]


class TopicReplica(Replica):
    """A copy of some topics. Messages keep their queue offsets; a mark says how far the master's log was taken.

    Args:
        path: Its directory; made where it is not there.
        options: Sizes, which are those of the master.
        topics: The topics.
        begin: Where a new copy begins: an offset of the master's log at which a record does. None for one that goes on.
        retention: How long its files stay; for ever without.

    Raises:
        StoreBusyError: Another process has it.
        UnsupportedStoreError: Neither empty nor a store.

    Example:
        >>> directory = getfixture("tmp_path") / "copy"
        >>> sizes = AppendOptions(file_size=1 << 20, index_slots=1000, index_entries=4000)
        >>> with TopicReplica(directory, sizes, ["orders"], begin=3 << 20) as copy:
        ...     copy.bounds, copy.store.appender.log_bounds()
        ((3145728, 3145728), (1048576, 1048576))

    Source: none.
    """

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
        """Whether it is one that has taken anything of its master's log."""
        position, compare_from = load_mark(os.fspath(path)) or (0, 0)
        return position > compare_from

    @property
    def bounds(self) -> tuple[int, int]:
        """From where the master's log is compared when this goes on, and up to where it is taken."""
        mark = load_mark(os.fspath(self.path))
        if mark is None:
            raise StoreError(f"{self.path}: its mark was removed; begin a new copy in another directory")
        position, compare_from = mark
        return compare_from, position

    def compare_from(self, end: int, most: int) -> int:
        """Where to ask for its master's log from, whatever the arguments: the mark says it."""
        del end, most
        return self.bounds[0]
