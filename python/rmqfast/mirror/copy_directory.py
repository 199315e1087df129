"""The directory of a broker's copy: opens it with the master's file sizes, cuts it, or begins a new one beside it."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from rmqfast.admin.admin_client import AdminClient
from rmqfast.broker.configuration.config import BrokerConfig
from rmqfast.broker.options_of_config import append_options
from rmqfast.client.instance.broker_requests import decode_viewed
from rmqfast.errors import ArgumentError, MirrorError, RmqError, StoreError
from rmqfast.logs import logger_of
from rmqfast.mirror.options import MirrorOptions
from rmqfast.mirror.source import LogBounds, Source
from rmqfast.paths import exists, list_directory
from rmqfast.store.append_options import AppendOptions
from rmqfast.store.config import ConsumerOffsetTable, DelayOffsetTable, TopicConfigTable
from rmqfast.store.config.delay_levels import SCHEDULE_TOPIC
from rmqfast.store.config.file import ConfigFile
from rmqfast.store.replica import Replica, TopicReplica, newest_copy


def first_offset(client: AdminClient, source: Source, bounds: LogBounds, options: MirrorOptions) -> int:
    """Returns the offset at which a new mirror starts. Raises `ArgumentError` if the log does not have it."""
    size, start = source.log.file_size, options.start
    last = max(bounds.end - 1, bounds.begin) // size * size
    if isinstance(start, datetime):
        return _before(client, source, range(bounds.begin, last + 1, size), start)
    if isinstance(start, str):
        return bounds.begin if start == "earliest" else last
    if not bounds.begin <= start <= bounds.end:
        raise ArgumentError(f"start: expected an offset of the log, {bounds.begin} to {bounds.end}, got {start}")
    return min(start // size * size, last)


def _before(client: AdminClient, source: Source, files: range, when: datetime) -> int:
    """Returns the start of the last log file whose first message was stored before `when`, or of the first file."""
    aware = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    wanted = round(aware.timestamp() * 1000)
    low, high = 0, len(files) - 1
    while low < high:
        middle = (low + high + 1) // 2
        record = client.api.view_message(source.address, files[middle], timeout=client.timeout)
        if decode_viewed(record, files[middle], source.broker_name).store_timestamp < wanted:
            low = middle
        else:
            high = middle - 1
    return files[low]


def of_topics(table: ConfigFile, topics: AbstractSet[str]) -> ConfigFile | None:
    """Returns a table's part about the given topics. `None` for a table that a mirror of some topics does not have."""
    match table:
        case TopicConfigTable():
            entries = (entry for name, entry in table.items() if name in topics)
            kept: ConfigFile = TopicConfigTable(entries, table.data_version)
        case ConsumerOffsetTable():
            kept = offsets = ConsumerOffsetTable()
            for (topic, group), queues in table.items():
                for queue_id, offset in queues.items() if topic in topics else ():
                    offsets.commit(topic, group, queue_id, offset)
        # Without these offsets, a broker would deliver all delayed messages again.
        case DelayOffsetTable() if SCHEDULE_TOPIC in topics:
            return table
        # Groups do not belong to a topic.
        case _:
            return None
    kept.other = table.other
    return kept


_log = logger_of(__name__)
#: File that names the copied broker and the topics.
NAME = "mirror.json"
ALL = "all topics"
#: Options of a copy, with the keys of the master's configuration that set them.
_FIELDS = {
    "file_size": "mappedFileSizeCommitLog",
    "queue_file_size": "mappedFileSizeConsumeQueue",
    "index_slots": "maxHashSlotNum",
    "index_entries": "maxIndexNum",
    "delay_levels": "messageDelayLevel",
}


class CopyUser(Protocol):
    """Serves a copy while it is open, such as a slave's broker. Called on the thread that opens and closes the copy.

    `sizes` are the file sizes of the copy, which must equal the master's.
    """

    sizes: AppendOptions

    def on_open(self, replica: Replica) -> None:
        """Called when the copy was opened. If it raises, the copy is closed again."""

    def on_close(self) -> None:
        """Called before the copy is closed. If it raises, the copy is closed all the same."""

    def take(self, table: ConfigFile) -> None: ...


class CopyDirectory:
    """The directory of a broker's copy, and the copy itself while it is open.

    With a `user`, the user serves the copy and stores the configuration. Without a user, the newest copy beside `path`
    counts, and configuration goes to files below `config/`.
    """

    def __init__(self, path: Path, options: MirrorOptions, user: CopyUser | None = None) -> None:
        self.path: Path = newest_copy(path) if user is None else path
        self._first, self._options, self._user = path, options, user
        self._replica: Replica | None = None

    def open_alone(self, sizes: AppendOptions) -> None:
        """Opens the copy with the given file sizes, without asking the master."""
        self._hand_over(Replica(self.path, sizes, retention=self._options.retention))

    def take(self, table: ConfigFile) -> None:
        """Stores a configuration table of the master, or only the part about the mirror's topics."""
        kept = of_topics(table, frozenset(self._options.topics)) if self._options.topics else table
        if kept is None:
            return
        if self._user is None:
            kept.save(self.path)
        else:
            self._user.take(kept)

    def open(self, client: AdminClient, source: Source, bounds: LogBounds) -> Replica:
        """Opens the copy, or creates it. If it is open already, returns it.

        Raises:
            MirrorError: The directory holds the copy of another broker or of other topics, or files of another size.
            StoreError: The store cannot be opened.
        """
        if self._replica is None and self._user is None:
            # A later directory of this name may hold the current copy.
            self.path = newest_copy(self._first)
        self._check_name(source)
        self._check_sizes(source)
        replica = self._replica or self._open_new(client, source, bounds)
        self._write_name(source)
        own = replica.file_size
        if own != source.log.file_size:
            raise MirrorError(
                f"{self.path}: expected files of {source.log.file_size} bytes, as {source.broker_name} has, got {own}",
                next_step="mirror it into a new directory",
            )
        return replica

    def close(self) -> None:
        replica, self._replica = self._replica, None
        if replica is None:
            return
        try:
            if self._user is not None:
                self._user.on_close()
        except RmqError as error:
            _log.error("%s: who used the copy has not ended as it should: %s", self.path, error)
        finally:
            try:
                replica.close()
            except StoreError as error:
                # The next opening recovers the copy.
                _log.warning("%s: %s", self.path, error)

    def close_failed(self) -> None:
        """Closes a copy in which a write has failed. Opening it again will recover it."""
        if self._replica is not None and self._options.retention is not None:
            # Retention may free space on a full disk.
            with suppress(StoreError):
                self._replica.store.clean()
        self.close()

    def cut(self, source: Source, at: int) -> int:
        """Closes the copy and cuts its log after the last record that ends at or before `at`. Returns the new end."""
        self.close()
        return Replica.cut(self.path, at, self._sizes(source))

    def begin_anew(self) -> None:
        """Closes the copy and prepares another directory beside it, to copy the log from its start."""
        self.close()
        # Has its name file from the first moment, so that another broker of this name does not use it.
        new = self._first.parent / f".{self._first.name}.new"
        # Also an empty store, since a directory without one is not recognized as a copy.
        (new / "commitlog").mkdir(parents=True, exist_ok=True)
        (new / NAME).write_text((self.path / NAME).read_text())
        number = 2
        while not _rename_unless_taken(new, self._first.parent / f"{self._first.name}.{number}"):
            number += 1
        self.path = newest_copy(self._first)
        self._options = replace(self._options, start="earliest")

    def _open_new(self, client: AdminClient, source: Source, bounds: LogBounds) -> Replica:
        has_log = any(path.name[0].isdigit() for path in list_directory(self.path / "commitlog"))
        has_mark = TopicReplica.has_mark(self.path)
        topics, retention, sizes = self._options.topics, self._options.retention, self._sizes(source)
        if (has_log or has_mark) and has_mark != bool(topics):
            raise self._other_topics("some topics" if has_mark else ALL)
        is_begun = has_log or TopicReplica.is_begun(self.path)
        begin = None if is_begun else first_offset(client, source, bounds, self._options)
        if topics:
            return self._hand_over(TopicReplica(self.path, sizes, topics, begin=begin, retention=retention))
        return self._hand_over(Replica(self.path, sizes, begin=begin or 0, retention=retention))

    def _hand_over(self, replica: Replica) -> Replica:
        if self._user is not None:
            try:
                self._user.on_open(replica)
            except BaseException:
                replica.close()
                raise
        self._replica = replica
        return replica

    def _sizes(self, source: Source) -> AppendOptions:
        return _sizes_of(source) if self._user is None else self._user.sizes

    def _check_sizes(self, source: Source) -> None:
        """Refuses a `CopyUser` with other file sizes: its queues and index would differ from the master's."""
        if self._user is None:
            return
        own, theirs = self._user.sizes, _sizes_of(source)
        for field, key in _FIELDS.items():
            if getattr(own, field) != getattr(theirs, field):
                raise MirrorError(
                    f"{key}: expected {getattr(theirs, field)}, as {source.broker_name} has, got {getattr(own, field)}",
                    next_step=f"set {key} as the master has it, and begin a new store",
                )

    def _check_name(self, source: Source) -> None:
        path = self.path / NAME
        with suppress(FileNotFoundError):
            name = json.loads(path.read_text())
            topics = name.pop("topics", [])
            if name != _name(source):
                raise MirrorError(
                    f"{self.path} is the mirror of another broker than {_name(source)}: {path} has its name",
                    next_step="mirror it into another directory",
                )
            if topics != list(self._options.topics):
                raise self._other_topics(_names(topics))

    def _other_topics(self, there: str) -> MirrorError:
        return MirrorError(
            f"{self.path}: expected a mirror of {_names(self._options.topics)}, got one of {there}",
            next_step="name the topics that it keeps, or mirror into another directory",
        )

    def _write_name(self, source: Source) -> None:
        path = self.path / NAME
        if not exists(path):
            topics = {"topics": self._options.topics} if self._options.topics else {}
            new = path.with_suffix(".tmp")
            new.write_text(json.dumps(_name(source) | topics) + "\n")
            new.rename(path)


def _rename_unless_taken(directory: Path, name: Path) -> bool:
    """Renames a directory. Returns False if the new name exists already."""
    if os.path.lexists(name):
        return False
    try:
        directory.rename(name)
    except OSError as error:
        # Created by another process in the meantime.
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise
        return False
    return True


def copy_options(config: BrokerConfig) -> AppendOptions:
    """Returns the options for opening a copy, with the file sizes that a broker's configuration has."""
    return replace(append_options(config), flush="async", busy_after=None)


def _sizes_of(source: Source) -> AppendOptions:
    return copy_options(BrokerConfig({key: source.config[key] for key in _FIELDS.values() if key in source.config}))


def _names(topics: Sequence[str]) -> str:
    return ", ".join(topics) or ALL


def _name(source: Source) -> dict[str, object]:
    return {"brokerClusterName": source.config.get("brokerClusterName", ""), "brokerName": source.broker_name}
