"""A store directory that this process owns. It appends messages and can read them at once.

Source: RocketMQ's `DefaultMessageStore`, `ConsumeQueue`, `CommitLog`, `AppendMessageResult`, `StoreCheckpoint`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple
from weakref import WeakSet

from rmqfast._native import Appender, Store
from rmqfast.errors import StoreError
from rmqfast.message import Message
from rmqfast.pickling import not_picklable
from rmqfast.store.append_options import AppendOptions
from rmqfast.store.frames import Frame, arrow_rows, index_explained, messages_of
from rmqfast.store.reader import MessageStore
from rmqfast.store.retention import CleanReport, RetentionOptions
from rmqfast.store.scan_source import StoreFiles, StoreIo, StoreSource


class QueueTimes(NamedTuple):
    """Bounds of a queue, and times around the next offset of a reader.

    Attributes:
        first: Offset of the first message.
        end: Offset behind the last message.
        passed_timestamp: Store time of the message before the reader's offset, in milliseconds since 1970; -1 for none.
        unread_timestamp: Store time of the first stored message from there on; -1 for none,
            or if it was not looked at.
    """

    first: int
    end: int
    passed_timestamp: int
    unread_timestamp: int


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

    def progress(self, topic: str, offsets: Mapping[int, int], *, unread: bool = True) -> list[QueueTimes]:
        """Returns bounds and times of queues, in the order of `offsets`, which has a reader's next offset by queue id.

        Without `unread`, unread messages are not looked at: they may have to be read from the disk.
        """
        return [QueueTimes(*each) for each in self._appender.progress(topic, list(offsets.items()), unread)]

    def offset_for_time(self, topic: str, queue_id: int, when: int) -> int:
        """Returns the queue offset for a store time in milliseconds, as 4.9.4 computes it. 0 if there is no queue."""
        return self._appender.offset_for_time(topic, queue_id, when)

    def query(self, topic: str, key: str, max_num: int, begin: int, end: int) -> tuple[list[bytes], int, int]:
        """Returns the newest records that the index lists for a key, and the last entry of the index.

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
        """Returns the store time, in milliseconds, of a queue's, a topic's or the log's first message. -1 for none."""
        return self._appender.earliest_store_time(topic, queue_id)


# faster than `AppendResult(*place)`: no Python function is called
_as_result = tuple.__new__
_LOG = logging.getLogger("rmqfast.store")


class RecoveryReport(NamedTuple):
    """The findings of a recovery, and the repairs that it made.

    Attributes:
        log_end: Physical offset after the last complete record of the commit log.
        cut_bytes: Bytes removed after it: an incomplete record, or messages that were never acknowledged.
        records: Number of records examined.
        units: Number of consume-queue units written.
        unlisted: Records that are in no consume queue, because another record has the same queue offset.
        index_entries: Number of index entries written.
        left_out: Queue offsets of messages that were lost with the log's end; they are not used again.
    """

    log_end: int
    cut_bytes: int
    records: int
    units: int
    unlisted: int
    index_entries: int
    left_out: int = 0


class AppendResult(NamedTuple):
    """The location of a stored message, and its ids.

    Attributes:
        queue_id: Queue id in the topic, or in `SCHEDULE_TOPIC_XXXX` for a delayed message.
        queue_offset: Offset in the queue.
        physical_offset: Byte offset of the record in the commit log.
        offset_msg_id: The broker's message id: store host and physical offset in hexadecimal.
    """

    queue_id: int
    queue_offset: int
    physical_offset: int
    offset_msg_id: str


class WritableStore(MessageStore):
    """A store directory that this process owns until `close`. `open_store(path, mode="a")` opens it.

    Threads may share it, forks may not. Readers see a message at once. The file `abort` exists until `close`, as in
    RocketMQ; a store that was not closed is recovered by whoever opens it next, rmqfast or RocketMQ.

    After a failed write or flush the content of the files is unknown: later appends fail, and `close` keeps `abort`. If
    the disk is full when a file is to be created, nothing of the batch is written, and later appends may succeed.

    Attributes:
        path: The store's directory.
        recovery: The report of the recovery at opening; None if none was needed.

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
        io: StoreIo = "pread",
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
        # a lease would let the appender of this store wait for its own reader
        self._io: StoreIo = "pread" if io == "auto" else io
        self._clock = clock
        self._reader: Store | None = None
        self._reader_runs = 0
        # older readers, which scans and tails may still use
        self._readers: WeakSet[Store] = WeakSet()
        self._is_closed = False
        self.path = path
        super().__init__(self._native, StoreFiles(os.fspath(path), io=self._io), broker_name)

    @property
    def appender(self) -> Appender:
        """The native store, for Rust code that appends without Python."""
        return self._appender

    @property
    def live(self) -> LiveStore:
        """Queue bounds, consume-queue entries and raw records up to the last append. Opens no files."""
        self._refuse_closed()
        return LiveStore(self._appender)

    @property
    def _native(self) -> Store:
        """Returns a reader that sees each append. Returns a new reader after retention has removed files."""
        self._refuse_closed()
        # the reader may hold files that retention has removed
        runs = self._appender.cleaned_runs()
        reader = self._reader if runs == self._reader_runs else None
        reader = reader or Store.open(os.fspath(self.path), commit_log_dirs=[], io=self._io, pinned=False)
        self._reader, self._reader_runs = reader, runs
        self._readers.add(reader)
        return reader

    @_native.setter
    def _native(self, native: Store) -> None:
        self._reader = native

    def _source(self) -> StoreSource:
        return replace(super()._source(), is_pinned=False)

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
        """Stores one message and returns its location.

        Properties are stored in the order KEYS, TAGS, others; the attributes `tags` and `keys` override properties of
        the same name. A delay level (1 to 18 unless `AppendOptions.delay_levels` differs) or a property DELAY sends the
        message to `SCHEDULE_TOPIC_XXXX`. A missing UNIQ_KEY is not generated.

        Args:
            message: The message.
            born_host: `ip:port` or `[ip6]:port` of the sender. Default: the store's address.
            sys_flag: System flag of the record. Prepared and rolled-back messages are not added to the queue. A body
                that is marked as compressed is stored unchanged.
            reconsume_times: Number of failed consumptions.
            prepared_transaction_offset: Physical offset of the half message that this message ends.
            is_due: Whether the delay is over: a property DELAY is stored, but has no effect.
            waits: With flush="sync", whether to wait for the flush. A message with `wait_store=False` never waits.

        Raises:
            ArgumentError: A topic, body, property or number cannot be stored.
            StoreIOError: The operating system refused, such as for a full disk.
            StoreNotWritableError: The store is closed, or an earlier write or flush failed.
            FlushTimeoutError: The message is stored, but the flush took too long.
            StoreBusyError: Another append has held the log for longer than `busy_after`.
            ForkError: The store was opened before a fork.

        The errors' `put_status` is the status that a broker answers, such as "MESSAGE_ILLEGAL".

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
            # the producer's WAIT=false takes precedence, as at a broker
            waits and message.wait_store,
        )
        self._reader = None
        return _as_result(AppendResult, place)

    def append_batch(self, messages: Iterable[Message]) -> list[AppendResult]:
        """Stores messages as one batch of a producer: contiguous in one file of the log. Stores either all or none.

        Args:
            messages: Messages of one queue without delay, together at most `max_message_size` bytes as a producer
                encodes them.

        Raises:
            ArgumentError: The messages do not form a batch, or one cannot be stored.
            RmqError: As for `append`.
        """
        try:
            places = self._appender.append_batch(messages_of(messages), self._now())
        finally:
            self._reader = None
        return [AppendResult(*place) for place in places]

    def append_many(self, messages: Iterable[Message] | Frame) -> int:
        """Stores many `Message` objects, or anything that yields Arrow record batches. Returns the number of messages.

        Accepted are data frames of pandas and Polars (also lazy), tables, readers and datasets of pyarrow, relations of
        DuckDB, and scans. Columns are `topic` and `body`, optionally `tags`, `keys`, `properties`, `queue_id`, `flag`,
        `born_timestamp`, `born_host`, `sys_flag` (without its compression bits), `reconsume_times`,
        `prepared_transaction_offset`; null means the default of `append`. Other columns of a scan and the unnamed index
        of a data frame are ignored, so a scan can be appended to another store. Strings may be categories. `keys` are a
        string or a list; `properties` are a map, a struct or a list of pairs.

        Each record batch is stored as a whole or not at all; `Message` objects form one batch. If a batch is refused,
        earlier batches stay stored; the error names the row, counted from 0 over the stream.

        Returns:
            The number of stored messages.

        Raises:
            ArgumentError: A row cannot be stored, a column has a wrong type, or the argument is of another type.
            StoreNotWritableError: The store is closed, or an earlier write or flush failed.
            UnknownColumnError: A column is unknown.
            StoreIOError: The operating system refused, such as for a full disk.
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
        """Removes expired files: at most ten of the log, the oldest first, and their queue and index files.

        Appends and reads continue meanwhile. The newest file always stays. A queue without messages keeps its offsets.
        While the store is open, retention also runs by itself.

        Args:
            now: Milliseconds since 1970. Default: the system's clock. After a jump of more than a day, no file is
                removed by age until the clock is right again, or has run on for a day.
            manual: Whether to remove old files at any hour, and to trust the clock.

        Raises:
            ArgumentError: The store was opened without `retention`.
            StoreNotWritableError: The store is closed.
            StoreIOError: The operating system refused; a further call continues.
            ForkError: The store was opened before a fork.
        """
        report = CleanReport(*self._appender.clean(now=now, manual=manual))
        if report.clock_jump_ms:
            text = "store %s: the time of day jumped by %d ms; no file goes by age until it is right again or confirmed"
            _LOG.warning(text, self.path, report.clock_jump_ms)
        return report

    @property
    def last_clean(self) -> CleanReport | None:
        """The report of the latest run of retention, which may be an automatic run. None before the first run."""
        cleaned = self._appender.last_cleaned()
        return None if cleaned is None else CleanReport(*cleaned)

    def clean_expired_queues(self) -> list[tuple[str, int]]:
        """Removes consume queues without messages. Queues of delayed messages stay.

        Their next offsets are forgotten: a later message gets offset 0.

        Returns:
            Topic and queue id of each removed queue.

        Raises:
            StoreNotWritableError: The store is closed.
            StoreIOError: The operating system refused.
            ForkError: The store was opened before a fork.
        """
        return self._without_reader(self._appender.clean_expired_queues())

    def clean_unused_topics(self, configured: Collection[str]) -> list[tuple[str, int]]:
        """Removes the consume queues of topics that are not in `configured`. The broker's own topics stay.

        Their next offsets are forgotten. Their messages stay in the log until they expire, but recovery does not add
        them to queues again, because `config/removedTopics.json` stores the log's end.

        Returns:
            Topic and queue id of each removed queue.

        Raises:
            StoreNotWritableError: The store is closed.
            StoreIOError: The operating system refused.
            ForkError: The store was opened before a fork.
        """
        return self._without_reader(self._appender.clean_unused_topics(set(configured)))

    def _without_reader(self, queues: list[tuple[str, int]]) -> list[tuple[str, int]]:
        self._reader = None
        return queues

    def flush(self) -> None:
        """Flushes the log, the consume queues and the index, and then writes the checkpoint.

        Raises:
            StoreIOError: The operating system refused; later appends fail.
            StoreNotWritableError: The store is closed, or an earlier write or flush failed.
        """
        self._appender.flush()

    def refresh(self) -> None:
        """Does nothing, since a writable store always reads up to its last append.

        Raises:
            StoreError: The store is closed.
        """
        self._refuse_closed()

    def close(self) -> None:
        """Flushes and closes the store with its scans and tails, whose methods then raise. Removes the file `abort`.

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
