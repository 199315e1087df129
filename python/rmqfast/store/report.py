"""Reports of operations on a store: info, verify, export, ingest.

Source: RocketMQ's `IndexFile`, `IndexHeader`, `RunningFlags`, `StoreCheckpoint`, `MessageStoreConfig`, `CommitLog`,
`ConsumeQueue`, `IndexService`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from rmqfast.html import facts, table
from rmqfast.message import BadBody, Damage


class IndexFile(NamedTuple):
    """An index file.

    Attributes:
        file: The path.
        size: Size in bytes.
        entries: Number of entries.
        geometry: Capacity in slots and entries (`maxHashSlotNum`, `maxIndexNum`); None if it cannot be derived, so that
            queries read the log instead.
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
        version: "4.x" or "5.x", guessed from the files; None for an empty store.
        commit_log_files: Number of files of the commit log.
        commit_log_file_size: Bytes of a commit-log file (`mappedFileSizeCommitLog`).
        min_offset: Physical offset of the first byte of the commit log.
        max_offset: Physical offset after the last intact record.
        queue_kind: "files", "rocksdb" (reads then use the commit log only) or "missing".
        consume_queue_file_size: Bytes of a consume-queue file (`mappedFileSizeConsumeQueue`).
        topics: Number of topics.
        index_files: The index files, oldest first.
        aborted: Whether the file `abort` exists: a broker is running or has crashed.
        checkpoint: Times up to which log, queues and index were flushed, in milliseconds since 1970.
        first_store_timestamp: Store time of the first message, in milliseconds since 1970.
        last_store_timestamp: Store time of the last message.
        notes: Remarks, such as that a configuration was read from its `.bak`.
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
    """The result of checking a whole store.

    Attributes:
        messages: Number of intact records of the commit log.
        log_bytes: Bytes of the log.
        queues: Number of consume queues.
        units: Number of consume-queue units that match their record.
        unlisted: Records at the log's end that are not in a consume queue yet; a broker adds them when it starts.
        forgotten: Records of topics that were deleted, perhaps created again.
        index_files: Number of index files.
        index_entries: Number of index entries that match their message.
        config_files: Number of configuration files that are readable, or have a readable `.bak`.
        aborted: Whether the file `abort` exists; this alone is no damage, because recovery handles it.
        damage: Up to 10,000 damaged places; offsets refer to the damaged file's kind: log, consume queue or index.
        more_damage: Number of further damaged places.
        notes: Remarks, each with the file, and what was expected and found.
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
        """Whether the check found no damage."""
        return not self.damage

    def _repr_html_(self) -> str:
        counted = {name: getattr(self, name) for name in self.__slots__ if name != "damage"}
        places = table(Damage._fields, self.damage, caption="damage", count=len(self.damage) + self.more_damage)
        return facts("VerifyReport", {"ok": self.ok} | counted) + (places if self.damage else "")


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportReport:
    """The counts of an export, and the damage that it found.

    Attributes:
        path: The new store or file; None if an open file was passed.
        format: "store" or "jsonl".
        rows: Number of messages.
        bytes: Bytes of their records, or of the JSON lines.
        files: Number of files created.
        unlisted: Records of a new store that are in no consume queue, as in the original: those of deleted topics, or
            with the offset of another record.
        index_entries: Number of index entries of a new store.
        damage: Up to 10,000 damaged places, which were left out.
        more_damage: Number of further damaged places.
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
        """Whether the export left out no message."""
        return not self.damage


@dataclass(frozen=True, kw_only=True, slots=True)
class Ingested:
    """The counts of an ingest (`ingest`) or of a read (`read_all`).

    Attributes:
        rows: Number of messages.
        bytes: Bytes of their records in the commit log.
        seconds: Duration of the job.
        commits: Number of commits of the table.
        files: Number of files that they added.
        damage: Damaged places that an ingest skipped.
        bad_bodies: Number of bodies that could not be decoded, whose `value` is null.
        decode_errors: The first of them, at most 100. Empty for Spark, whose tasks log them.
        losses: Messages that an ingest could not read: they no longer exist, or their broker is away.
        errors: Number of rows for the table of errors, which then has the damage and the bad bodies.
    """

    rows: int
    bytes: int
    seconds: float
    commits: int = 0
    files: int = 0
    damage: tuple[Damage, ...] = ()
    bad_bodies: int = 0
    decode_errors: tuple[BadBody, ...] = ()
    losses: tuple[str, ...] = ()
    errors: int = 0
