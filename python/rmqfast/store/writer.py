"""A store directory that this process owns: appends, and reads of what was appended.

Source: RocketMQ's `CommitLog`, `AppendMessageResult`, `DefaultMessageStore`, `StoreCheckpoint`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Final, Literal, NamedTuple
from weakref import WeakSet

from rmqfast._native import Appender, Store
from rmqfast.errors import StoreError
from rmqfast.message import Message
from rmqfast.store.append_options import AppendOptions
from rmqfast.store.frames import Frame, arrow_rows, index_explained, messages_of
from rmqfast.store.live import LiveStore
from rmqfast.store.reader import MessageStore
from rmqfast.store.retention import CleanReport, RetentionOptions

__all__ = ["AppendOptions", "AppendResult", "RecoveryReport", "WritableStore"]


# what `AppendResult(*place)` does, without a call of Python's
_as_result = tuple.__new__
_LOG = logging.getLogger("rmqfast.store")


class RecoveryReport(NamedTuple):
    """The findings and repairs of recovery.

    Attributes:
        log_end: Offset behind the last whole record of the commit log.
        cut_bytes: Bytes that stood behind it and are gone: half a record, or what nobody had been told was stored.
        records: Records that were looked at.
        units: Consume-queue units that were written.
        unlisted: Records that no queue lists, as others have their offsets.
        index_entries: Index entries that were written.
        left_out: Queue offsets of messages that are gone with the end of the log, and are not given again.

    Example:
        >>> import rmqfast
        >>> with rmqfast.open_store(getfixture("golden_store_copy")("crash-4.9.4"), mode="a") as store:
        ...     store.recovery.records, store.recovery.cut_bytes
        (1646, 0)
    """

    log_end: int
    cut_bytes: int
    records: int
    units: int
    unlisted: int
    index_entries: int
    left_out: int = 0


class AppendResult(NamedTuple):
    """The place of a stored message.

    Attributes:
        queue_id: Queue of the topic; of `SCHEDULE_TOPIC_XXXX` for a delayed message.
        queue_offset: Its number in the queue.
        physical_offset: Byte offset of its record in the commit log.
        offset_msg_id: Hex of store host and physical offset.

    Example:
        >>> import rmqfast
        >>> with rmqfast.open_store(getfixture("tmp_path") / "appended", mode="a") as store:
        ...     result = store.append(rmqfast.Message("orders", b"paid"))
        >>> result.queue_offset, result.physical_offset
        (0, 0)
    """

    queue_id: int
    queue_offset: int
    physical_offset: int
    offset_msg_id: str


class WritableStore(MessageStore):
    """A store directory, opened by `open_store(path, mode="a")`: owned by this process until `close`.

    Threads may share it; a fork of the process may not use it. What was appended can be read at once, from here or by
    any reader. While it is open the file `abort` is there, as RocketMQ has it: it goes with `close`. A store that is
    left without `close`, by the end of the process or by the garbage collector, keeps it; whoever opens the store
    next, this package or RocketMQ, recovers it first.

    Where a write or a flush fails, nobody knows what is in the files: every later append fails, and `close` leaves
    `abort`. A disk that is full when a file is to be created is no such failure: nothing of that batch is written.

    Attributes:
        path: The store's directory.
        recovery: What recovery did when the store was opened; None where nothing had to be recovered.

    Example:
        >>> import rmqfast
        >>> directory = getfixture("tmp_path") / "store"
        >>> small = rmqfast.AppendOptions(file_size=1 << 20, index_slots=1000, index_entries=4000)
        >>> with rmqfast.open_store(directory, mode="a", options=small) as store:
        ...     store.append(rmqfast.Message("orders", b"paid", tags="paid", keys="42")).queue_offset
        ...     store.scan("orders").to_arrow()["body"].to_pylist()
        0
        [b'paid']
    """

    def __init__(
        self,
        path: Path,
        options: AppendOptions,
        *,
        retention: RetentionOptions | None = None,
        broker_name: str | None = None,
        io: Literal["pread", "mmap"] = "pread",
        clock: Callable[[], int] | None = None,
        progress: Callable[[int, int], object] | None = None,
        replica_from: int | None = None,
    ) -> None:
        own = options.with_system_values()
        self._appender = Appender.open(
            os.fspath(path), own, retention=retention, progress=progress, replica_from=replica_from
        )
        recovered = self._appender.recovered()
        self.recovery: Final = None if recovered is None else RecoveryReport(*recovered)
        if self.recovery is not None:
            _LOG.warning("store %s: it was not closed, or its parts disagreed: %s", path, self.recovery)
        self._io = io
        self._clock = clock
        self._reader: Store | None = None
        self._reader_runs = 0
        # of scans and tails, which may have an older one
        self._readers: WeakSet[Store] = WeakSet()
        self._is_closed = False
        self.path = path
        super().__init__(self._native, path, broker_name)

    @property
    def appender(self) -> Appender:
        """The native object, for a data plane that appends without Python."""
        return self._appender

    @property
    def live(self) -> LiveStore:
        """Bounds, units and raw records right after the last append, without opening files.

        Example:
            >>> import rmqfast
            >>> small = rmqfast.AppendOptions(file_size=1 << 20, index_slots=1000, index_entries=4000)
            >>> with rmqfast.open_store(getfixture("tmp_path") / "live", mode="a", options=small) as store:
            ...     place = store.append(rmqfast.Message("orders", b"paid"))
            ...     store.live.queue_bounds("orders", 0)
            (0, 1)
        """
        self._refuse_closed()
        return LiveStore(self._appender)

    @property
    def _native(self) -> Store:
        """A reader that knows the files as they are since the last append, or since retention removed some."""
        self._refuse_closed()
        # a reader has files open that retention has removed since
        runs = self._appender.cleaned_runs()
        reader = self._reader if runs == self._reader_runs else None
        reader = reader or Store.open(os.fspath(self.path), commit_log_dirs=[], io=self._io, pinned=False)
        self._reader, self._reader_runs = reader, runs
        self._readers.add(reader)
        return reader

    @_native.setter
    def _native(self, native: Store) -> None:
        self._reader = native

    def append(
        self,
        message: Message,
        *,
        born_host: str | None = None,
        sys_flag: int = 0,
        reconsume_times: int = 0,
        prepared_transaction_offset: int = 0,
        is_due: bool = False,
        waits: bool = True,
    ) -> AppendResult:
        """Stores one message.

        Properties are stored as KEYS, TAGS, then the others in their order; `tags` and `keys` win over properties of
        their name. A delay level of 1 to 18 delays the message (`AppendOptions.delay_levels` may have others), and so
        does a property DELAY: it goes to `SCHEDULE_TOPIC_XXXX`. No UNIQ_KEY is made up.

        Args:
            message: What to store.
            born_host: `ip:port` or `[ip6]:port` of who sent it; the store's own unless given.
            sys_flag: Bits as in a record. A transaction type of prepared or rolled back gives the message no place in
                its queue; a compressed body is stored as it is.
            reconsume_times: How often it was consumed in vain.
            prepared_transaction_offset: Physical offset of the half message that this one ends.
            is_due: A property DELAY is history, as of a message that was delayed: it is stored, and delays no more.
            waits: With flush="sync" the call returns once the disk has the message; without, or where the message has
                `wait_store=False`, it does not wait.

        Raises:
            ArgumentError: A topic, body, property or number that cannot be stored.
            StoreIOError: The operating system refused, as for a full disk.
            StoreNotWritableError: The store is closed, or a write or a flush has failed.
            FlushTimeoutError: The message is stored, but the disk did not take it in time.
            StoreBusyError: Another append has held the log for longer than `busy_after`.
            ForkError: The store was opened before a fork.

        The `put_status` of each of them is what a broker answers, as "MESSAGE_ILLEGAL".

        Example:
            >>> import rmqfast
            >>> small = rmqfast.AppendOptions(file_size=1 << 20, index_slots=1000, index_entries=4000)
            >>> with rmqfast.open_store(getfixture("tmp_path") / "new", mode="a", options=small) as store:
            ...     store.append(rmqfast.Message("orders", b"paid", queue_id=3)).offset_msg_id
            '7F00000100002A9F0000000000000000'
        """
        place = self._appender.append(
            message,
            None if self._clock is None else self._clock(),
            born_host,
            sys_flag,
            reconsume_times,
            prepared_transaction_offset,
            is_due,
            # the producer's WAIT=false wins, as with a broker
            waits and message.wait_store,
        )
        self._reader = None
        return _as_result(AppendResult, place)

    def append_batch(self, messages: Iterable[Message]) -> list[AppendResult]:
        """Stores messages as a producer's batch: contiguous, in one file of the log, or none of them.

        Args:
            messages: Of one queue; without DELAY. As a producer sends them they take at most `max_message_size` bytes.

        Raises:
            ArgumentError: Messages that make no such batch, or one that cannot be stored.
            RmqError: As `append`.

        Example:
            >>> import rmqfast
            >>> small = rmqfast.AppendOptions(file_size=1 << 20, index_slots=1000, index_entries=4000)
            >>> with rmqfast.open_store(getfixture("tmp_path") / "new", mode="a", options=small) as store:
            ...     [place.queue_offset for place in store.append_batch([rmqfast.Message("orders", b"paid")] * 3)]
            [0, 1, 2]
        """
        try:
            places = self._appender.append_batch(messages_of(messages), self._now())
        finally:
            self._reader = None
        return [AppendResult(*place) for place in places]

    def append_many(self, messages: Iterable[Message] | Frame) -> int:
        """Stores many messages: `Message` objects, or anything that gives Arrow record batches.

        That is a frame of pandas or Polars, also a lazy one, a table, a reader or a data set of pyarrow, a relation of
        DuckDB, a scan. The columns are `topic` and `body`, and as wanted `tags`, `keys`, `properties`, `queue_id`,
        `flag`, `born_timestamp`, `born_host`, `sys_flag` (without its bits of compression), `reconsume_times`,
        `prepared_transaction_offset`; null or no value is that of `append`. The other columns of a scan's row are
        passed over, so that a scan of one store can be appended to another; so is the unnamed index of a frame.

        Texts may be categories. `keys` are one text or a list; `properties` are a map, a struct, or a list of pairs, as
        `to_pandas` makes them.

        A record batch is stored as a whole or not at all: all rows are checked, and the files that they need are
        created, before the first is written. `Message` objects are one batch. When a batch of a stream is refused those
        before it stay stored; the error names the row, counted from 0 over the stream.

        Returns:
            How many messages were stored.

        Raises:
            ArgumentError: A row that cannot be stored, a column of a wrong type; no messages and no frame.
            StoreNotWritableError: The store is closed, or a write or a flush has failed.
            UnknownColumnError: A column that a row does not have.
            StoreIOError: The operating system refused, as for a full disk.
            ForkError: The store was opened before a fork.

        Example:
            >>> import pyarrow as pa, rmqfast
            >>> small = rmqfast.AppendOptions(file_size=1 << 20, index_slots=1000, index_entries=4000)
            >>> table = pa.table({"topic": ["orders"] * 3, "body": [b"a", b"b", b"c"], "queue_id": [0, 1, 0]})
            >>> with rmqfast.open_store(getfixture("tmp_path") / "new", mode="a", options=small) as store:
            ...     store.append_many(table)
            3
        """
        rows = arrow_rows(messages)
        try:
            if rows is None:
                return self._appender.append_messages(messages_of(messages), store_timestamp=self._now())
            with index_explained(messages):
                return self._appender.append_arrow(rows, store_timestamp=self._now())
        finally:
            self._reader = None

    def clean(self, *, now: int | None = None, manual: bool = False) -> CleanReport:
        """Removes expired files: at most ten files of the log, the oldest first, and their queue and index files.

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
        """
        report = CleanReport(*self._appender.clean(now=now, manual=manual))
        if report.clock_jump_ms:
            text = "store %s: the time of day jumped by %d ms; no file goes by age until it is right again or confirmed"
            _LOG.warning(text, self.path, report.clock_jump_ms)
        return report

    @property
    def last_clean(self) -> CleanReport | None:
        """The report of the latest run of retention, including automatic ones; None before the first."""
        cleaned = self._appender.last_cleaned()
        return None if cleaned is None else CleanReport(*cleaned)

    def clean_expired_queues(self) -> list[tuple[str, int]]:
        """Removes the consume queues without messages, except those of delayed messages.

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
        """
        return self._without_reader(self._appender.clean_expired_queues())

    def clean_unused_topics(self, configured: Collection[str]) -> list[tuple[str, int]]:
        """Removes the consume queues of topics that are not configured, except the broker's own.

        Their next offsets are forgotten. Their messages stay in the log until they are old, but no recovery lists them
        again: `config/removedTopics.json` says where the log ended.

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
        """
        return self._without_reader(self._appender.clean_unused_topics(set(configured)))

    def _without_reader(self, queues: list[tuple[str, int]]) -> list[tuple[str, int]]:
        self._reader = None
        return queues

    def flush(self) -> None:
        """Flushes everything that was appended: log, queues, index, then the checkpoint.

        Raises:
            StoreIOError: The operating system refused; nothing can be appended any more.
            StoreNotWritableError: The store is closed, or a write or a flush has failed.
        """
        self._appender.flush()

    def refresh(self) -> None:
        """Does nothing: the owner of a store reads what it has appended so far.

        Raises:
            StoreError: The store is closed.
        """
        self._refuse_closed()

    def close(self) -> None:
        """Flushes, removes `abort` and closes the store, its scans and its tails, which raise from then on.

        A second call does nothing.

        Raises:
            StoreIOError: The operating system refused; `abort` stays.
        """
        try:
            self._appender.close()
        finally:
            self._is_closed, self._reader = True, None
            for reader in list(self._readers):
                reader.close()

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise StoreError(f"{self.path}: the store is closed")

    def _now(self) -> int | None:
        return None if self._clock is None else self._clock()
