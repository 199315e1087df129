"""What retention removes from a store that this process owns, asked for or by itself."""

from __future__ import annotations

import logging
from collections.abc import Collection

from rmqfast._native import Appender, Store
from rmqfast.store.reader import MessageStore
from rmqfast.store.retention import CleanReport

__all__ = ["Cleaning"]

_LOG = logging.getLogger("rmqfast.store")


class Cleaning(MessageStore):
    """The part of `WritableStore` that removes."""

    _appender: Appender
    _reader: Store | None

    def clean(self, *, now: int | None = None, manual: bool = False) -> CleanReport:
        """Removes what retention lets go: at most ten files of the log, the oldest first, and what lists only those.

        Others may append and read meanwhile. The file that is written to stays, however old. A queue of which no
        message is left keeps its offsets. While the store is open, runs come by themselves, too.

        Args:
            now: Milliseconds since 1970; the system's clock unless given. A time of day that jumped by more than a
                day since the store was opened is not believed: then nothing goes by age until it is right again, or a
                day of runs has agreed on the new time.
            manual: Files go by age at any hour of the day, and the time of day is believed.

        Raises:
            ArgumentError: The store was opened without `retention`.
            StoreNotWritableError: The store is closed.
            StoreIOError: The operating system refused; another call goes on where this one ended.
            ForkError: The store was opened before a fork.

        Example:
            >>> import rmqfast
            >>> small = rmqfast.AppendOptions(file_size=1 << 20, index_slots=1000, index_entries=4000)
            >>> keep = rmqfast.RetentionOptions(file_reserved_hours=24)
            >>> path = getfixture("tmp_path") / "new"
            >>> with rmqfast.open_store(path, mode="a", options=small, retention=keep) as store:
            ...     store.clean(manual=True).log_files
            0

        Source: `DefaultMessageStore.cleanFilesPeriodically`, `executeDeleteFilesManually`.
        """
        report = CleanReport(*self._appender.clean(now=now, manual=manual))
        if report.clock_jump_ms:
            text = "store %s: the time of day jumped by %d ms; no file goes by age until it is right again or confirmed"
            _LOG.warning(text, self.path, report.clock_jump_ms)
        return report

    @property
    def last_clean(self) -> CleanReport | None:
        """What the last run of retention did, one that came by itself, too; None before the first."""
        done = self._appender.last_cleaned()
        return None if done is None else CleanReport(*done)

    def clean_expired_queues(self) -> list[tuple[str, int]]:
        """Removes the consume queues of which no message is left, but those of delayed messages.

        Their next offsets are forgotten: a later message gets offset 0.

        Returns:
            Topic and queue of each.

        Raises:
            StoreNotWritableError: The store is closed.
            StoreIOError: The operating system refused.
            ForkError: The store was opened before a fork.

        Example:
            >>> import rmqfast
            >>> small = rmqfast.AppendOptions(file_size=1 << 20, index_slots=1000, index_entries=4000)
            >>> with rmqfast.open_store(getfixture("tmp_path") / "new", mode="a", options=small) as store:
            ...     store.clean_expired_queues()
            []

        Source: `DefaultMessageStore.cleanExpiredConsumerQueue`.
        """
        return self._gone(self._appender.clean_expired_queues())

    def clean_unused_topics(self, configured: Collection[str]) -> list[tuple[str, int]]:
        """Removes the consume queues of topics that are not configured, but those of the broker itself.

        Their next offsets are forgotten. Their messages stay in the log until they are old, but no recovery lists them
        again: `config/removedTopics.json` says where the log ended.

        Args:
            configured: The topics that stay.

        Returns:
            Topic and queue of each that was removed.

        Raises:
            StoreNotWritableError: The store is closed.
            StoreIOError: The operating system refused.
            ForkError: The store was opened before a fork.

        Example:
            >>> import rmqfast
            >>> small = rmqfast.AppendOptions(file_size=1 << 20, index_slots=1000, index_entries=4000)
            >>> with rmqfast.open_store(getfixture("tmp_path") / "unused", mode="a", options=small) as store:
            ...     store.append(rmqfast.Message("orders", b"paid")).queue_offset
            ...     store.clean_unused_topics({"clicks"})
            0
            [('orders', 0)]

        Source: `DefaultMessageStore.cleanUnusedTopic`.
        """
        return self._gone(self._appender.clean_unused_topics(set(configured)))

    def _gone(self, queues: list[tuple[str, int]]) -> list[tuple[str, int]]:
        self._reader = None
        return queues
