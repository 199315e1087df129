"""Reports of a store: info, verification, export, Parquet.

Source: RocketMQ's `IndexFile`, `IndexHeader`, `RunningFlags`, `StoreCheckpoint`, `MessageStoreConfig`, `CommitLog`,
`ConsumeQueue`, `IndexService`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from rmqfast.html import facts, table
from rmqfast.message import Damage

__all__ = ["ExportReport", "IndexFile", "Ingested", "StoreInfo", "VerifyReport"]


class IndexFile(NamedTuple):
    """An index file.

    Attributes:
        file: Its path.
        size: Bytes.
        entries: Entries written.
        geometry: Slots and entries that it has room for (`maxHashSlotNum`, `maxIndexNum`); None where they do not
            follow from what it holds: then look-ups read the log instead.

    Example:
        >>> import rmqfast
        >>> with rmqfast.open_store(getfixture("golden_store")("basic-4.9.4")) as store:
        ...     [(index.entries, index.geometry) for index in store.info().index_files]
        [(3999, (1000, 4000)), (2180, (1000, 4000))]
    """

    file: str
    size: int
    entries: int
    geometry: tuple[int, int] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreInfo:
    """A summary of a store.

    Attributes:
        path: The store's directory.
        version: "4.x" or "5.x" as far as its files tell; None for an empty store.
        commit_log_files: Number of files of the commit log.
        commit_log_file_size: Bytes of one (`mappedFileSizeCommitLog`).
        min_offset: Physical offset of the first byte that is there.
        max_offset: Physical offset behind the last sound record.
        queue_kind: "files", "rocksdb" (read through the commit log) or "missing".
        consume_queue_file_size: Bytes of one (`mappedFileSizeConsumeQueue`).
        topics: Number of topics that the store knows.
        index_files: The index files, oldest first.
        aborted: Whether `abort` is there: a broker runs, or crashed.
        checkpoint: Milliseconds since 1970 up to which log, queues and index were flushed.
        first_store_timestamp: Milliseconds since 1970 of the first message.
        last_store_timestamp: Of the last one.
        notes: What a person should know, as a configuration that was read from its `.bak`.

    Example:
        >>> import rmqfast
        >>> with rmqfast.open_store(getfixture("golden_store")("basic-4.9.4")) as store:
        ...     info = store.info()
        >>> info.queue_kind, info.commit_log_files
        ('files', 3)
    """

    path: str
    version: Literal["4.x", "5.x"] | None
    commit_log_files: int
    commit_log_file_size: int | None
    min_offset: int
    max_offset: int
    queue_kind: Literal["files", "rocksdb", "missing"]
    consume_queue_file_size: int | None
    topics: int
    index_files: list[IndexFile]
    aborted: bool
    checkpoint: tuple[int, int, int] | None
    first_store_timestamp: int | None
    last_store_timestamp: int | None
    notes: list[str]

    def _repr_html_(self) -> str:
        log, queues, index = self.checkpoint or (None, None, None)
        flushed = {"log_flushed_timestamp": log, "queues_flushed_timestamp": queues, "index_flushed_timestamp": index}
        counted = {name: getattr(self, name) for name in self.__slots__ if name != "checkpoint"}
        return facts("StoreInfo", counted | {"index_files": len(self.index_files)} | flushed)


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifyReport:
    """The counts and findings of a check of a whole store.

    Attributes:
        messages: Sound records of the commit log.
        log_bytes: Bytes of the log up to its end.
        queues: Consume queues.
        units: Consume-queue units that lead to their record.
        unlisted: Records at the end of the log that no queue lists yet: a broker lists them when it starts.
        forgotten: Records of topics that were deleted, or deleted and made again.
        index_files: Index files.
        index_entries: Index entries that lead to a message with their key.
        config_files: Configuration files that can be read, or whose `.bak` can.
        aborted: Whether `abort` is there; recovery will do its work, so that alone is no damage.
        damage: What is wrong, at most 10,000 entries; in a consume queue or an index, offsets are those in that.
        more_damage: How many more there are.
        notes: What a person should know; each says the file, what was expected and what was found.

    Example:
        >>> import rmqfast
        >>> with rmqfast.open_store(getfixture("golden_store")("basic-4.9.4")) as store:
        ...     report = store.verify()
        >>> report.ok, report.damage
        (True, [])
    """

    messages: int
    log_bytes: int
    queues: int
    units: int
    unlisted: int
    forgotten: int
    index_files: int
    index_entries: int
    config_files: int
    aborted: bool
    damage: list[Damage]
    more_damage: int
    notes: list[str]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.damage

    def _repr_html_(self) -> str:
        counted = {name: getattr(self, name) for name in self.__slots__ if name != "damage"}
        places = table(Damage._fields, self.damage, caption="damage", count=len(self.damage) + self.more_damage)
        return facts("VerifyReport", {"ok": self.ok} | counted) + (places if self.damage else "")


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportReport:
    """The counts of an export, and the damage it met.

    Attributes:
        path: The new store, or the file; None for an open file that was given.
        format: "store" or "jsonl".
        rows: Messages.
        bytes: Bytes of their records; of JSON lines those of the text.
        files: Files that were made.
        unlisted: Records of a new store that no queue lists although they have a place in one, as in the store that
            they are from: of deleted topics, or with an offset that another one has.
        index_entries: Index entries of a new store.
        damage: What could not be read and is left out, at most 10,000 entries.
        more_damage: How many more there are.

    Example:
        >>> import rmqfast
        >>> with rmqfast.open_store(getfixture("golden_store")("basic-4.9.4")) as store:
        ...     store.export(getfixture("tmp_path") / "out.jsonl", "fx_q1").rows
        1259
    """

    path: str | None
    format: Literal["store", "jsonl"]
    rows: int
    bytes: int
    files: int
    unlisted: int = 0
    index_entries: int = 0
    damage: list[Damage] = field(default_factory=list)
    more_damage: int = 0

    @property
    def ok(self) -> bool:
        """Whether no message was left out."""
        return not self.damage


@dataclass(frozen=True, kw_only=True, slots=True)
class Ingested:
    """The counts of an ingest or a read.

    Attributes:
        rows: Messages.
        bytes: Bytes of their records in the commit log.
        seconds: Time from the start of the job to its end.
        damage: Places that an ingest could not read, where damage does not end it.
    """

    rows: int
    bytes: int
    seconds: float
    damage: tuple[Damage, ...] = ()
