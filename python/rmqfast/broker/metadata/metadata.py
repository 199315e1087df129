"""Stores the metadata that a broker keeps over a restart: topics, groups, offsets, delays, SQL92 subscriptions.

Source: RocketMQ's `ConfigManager`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from rmqfast._native import config_text, save_config
from rmqfast.broker.metadata.database import Database
from rmqfast.errors import RmqError, StoreError, StoreIOError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.paths import local_path
from rmqfast.store.config import (
    ConsumerFilterTable,
    ConsumerOffsetTable,
    DelayOffsetTable,
    SubscriptionGroupTable,
    TopicConfigTable,
)
from rmqfast.store.config.file import ConfigFile
from rmqfast.store.config.versioned_table import VersionedTable
from rmqfast.store.metadata.integrity import digest_of
from rmqfast.system import monotonic
from rmqfast.threads import new_condition, new_thread

_log = logger_of(__name__)
#: Largest share of the time for writing files; larger files are written less often.
_SHARE = 0.1
#: Seconds until a failed write is tried again.
_AFTER_AN_ERROR = 5.0


class JavaFiles:
    """A thread that writes RocketMQ's files after the metadata in them has changed."""

    def __init__(self, root: Path, database: Database, members: Mapping[str, str]) -> None:
        self._root = root
        self._database = database
        self._members = members
        self._changed = new_condition()
        self._behind: set[str] = set()
        self._is_stopped = False
        self._writing = QuietLock()
        self._thread = new_thread(self._run, name="rmqfast-java-files")
        self._thread.start()

    def note(self, files: Iterable[str]) -> None:
        """Marks files as outdated, so that the thread writes them."""
        with self._changed:
            self._behind.update(files)
            self._changed.notify_all()

    def write(self) -> None:
        """Writes the outdated files now. Failures are logged, and the files stay marked."""
        with self._writing:
            with self._changed:
                files, self._behind = self._behind, set()
            failed = {file for file in sorted(files) if not self._write(file)}
            with self._changed:
                self._behind |= failed

    def stop(self) -> None:
        """Writes the outdated files and ends the thread."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
        self._thread.join()
        self.write()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._behind or self._is_stopped)
                if self._is_stopped:
                    return
            start = monotonic()
            self.write()
            # 50,000 topics take 0.6 s; without a pause, a write after each change would take all of the time.
            pause = (monotonic() - start) * (1 / _SHARE - 1)
            with self._changed:
                pause = max(pause, _AFTER_AN_ERROR if self._behind else 0.0)
                self._changed.wait_for(lambda: self._is_stopped, pause)

    def _write(self, file: str) -> bool:
        try:
            text = config_text(file, self._database.text(file, self._members[file]))
            digest = hashlib.sha256(text).hexdigest()
            # The file is up to date already.
            if digest == digest_of(self._root / "config" / file):
                return True
            # Noted first, so that the database recognizes the file as its own even after a kill.
            self._database.note_digest(file, digest)
            save_config(str(self._root), file, text)
            self._database.confirm_digest(file)
        except RmqError as error:
            _log.error("config/%s is not up to date, and is tried again: %s", file, error)
            return False
        return True


_Table = TypeVar("_Table", bound=ConfigFile)
_Versioned = TypeVar("_Versioned", bound=VersionedTable[Any])
#: Files in `config/` of a RocketMQ 4.9 broker.
_TABLES = (TopicConfigTable, SubscriptionGroupTable, ConsumerOffsetTable, DelayOffsetTable, ConsumerFilterTable)


class Metadata:
    """Stores single changes. The cost of a change does not depend on the amount of metadata. Thread-safe.

    `put` only notes a change; `flush` waits until all noted changes are on disk, in one transaction for all waiting
    threads. A thread of its own writes RocketMQ's files.

    The database counts as long as the files are those written by this broker. A file written by another program, such
    as a Java broker that used the store in the meantime, replaces the database's content.

    Example:
        >>> from rmqfast.store.config import TopicConfigTable
        >>> metadata = Metadata(getfixture("golden_store_copy")("basic-4.9.4"))
        >>> metadata.load(TopicConfigTable)["fx_q4"].write_queue_nums
        4
        >>> metadata.close()
    """

    def __init__(self, root: str | os.PathLike[str], permission: int = 0o600) -> None:
        self.root: Final = local_path(root, "root")
        names = [table.FILE_NAME for table in _TABLES]
        self._database = Database(self.root / "config" / "metadata.db", permission, names)
        self._files = JavaFiles(self.root, self._database, {table.FILE_NAME: table.MEMBER for table in _TABLES})
        self._lock = QuietLock()
        self._pending: dict[tuple[str, str, str], str | None] = {}
        self._defaults: dict[str, dict[tuple[str, str, str], str | None]] = {}
        self._taken_over: dict[str, str | None] = {}
        self._behind: set[str] = set()
        self._put_count = 0
        self._flushing = QuietLock()
        self._flushed_count = 0
        self._is_closed = False

    def load(self, table: type[_Table]) -> _Table:
        """Returns the table of a file, with all changes that are on disk."""
        try:
            if self._is_ours(table):
                text = self._database.text(table.FILE_NAME, table.MEMBER)
                return table.of_members(json.loads(text))
        except StoreIOError as error:
            if not self._database.is_blank:
                raise  # the database may be newer than the file
            _log.error("RocketMQ's file is read instead: %s", error)
        content = table.load(self.root)
        self._tell_of_changes(content)
        self._take_over(content)
        return content

    def load_with(self, table: type[_Versioned], built_in: Sequence[Any]) -> _Versioned:
        """Returns a table with built-in entries added. As in RocketMQ, the first change of the table saves them."""
        content = self.load(table)
        with self._lock:
            self._defaults[table.FILE_NAME] = {
                ("entry", table.FILE_NAME, name): _json(entry.to_json())
                for name, entry in table(built_in).items()
                if name not in content
            }
        content.add_built_in(built_in)
        return content

    def put(self, table: type[ConfigFile], name: str, value: Any) -> None:
        """Sets an entry of a table. `value` has the form of `to_json`; None removes the entry."""
        self._put("entry", table, name, value)

    def put_texts(self, table: type[ConfigFile], entries: Iterable[tuple[str, str | None]]) -> None:
        with self._lock:
            for name, text in entries:
                self._note("entry", table, name, text)

    def put_member(self, table: type[ConfigFile], name: str, value: Any) -> None:
        """Sets a field of a table's file that is not an entry, such as `dataVersion`."""
        self._put("member", table, name, value)

    def is_kept(self, table: type[ConfigFile]) -> bool:
        """Whether the database has a table, even if it is empty."""
        try:
            return self._database.is_filled(table.FILE_NAME)
        except StoreError:
            return False

    def write_behind(self, table: type[ConfigFile]) -> None:
        """Marks the file of a table as outdated, even if the table has not changed."""
        self._files.note([table.FILE_NAME])

    def flush(self) -> None:
        """Waits until all changes so far are on disk."""
        with self._lock:
            count = self._put_count
        with self._flushing:  # threads that wait here find their changes already written
            if self._flushed_count < count:
                self._write()

    def flush_or_log(self) -> None:
        """Like `flush`, but only logs failures. The next change tries again."""
        try:
            self.flush()
        except RmqError as error:
            _log.error("topics, groups or offsets were not saved, and are tried again: %s", error)

    def write_files(self) -> None:
        """Writes the outdated files of RocketMQ now."""
        self._files.write()

    def close(self) -> None:
        """Flushes, writes outdated files, and closes the database. May be called twice."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self.flush()
        finally:
            self._files.stop()
            self._database.close()

    def _put(self, kind: str, table: type[ConfigFile], name: str, value: Any) -> None:
        text = _json(value)
        with self._lock:
            self._note(kind, table, name, text)

    def _note(self, kind: str, table: type[ConfigFile], name: str, text: str | None) -> None:
        # The first change of a table also saves its built-in entries.
        self._pending.update(self._defaults.pop(table.FILE_NAME, {}))
        self._pending[kind, table.FILE_NAME, name] = text
        self._behind.add(table.FILE_NAME)
        self._put_count += 1

    def _write(self) -> None:
        with self._lock:
            changes, self._pending = self._pending, {}
            taken_over, self._taken_over = self._taken_over, {}
            behind, self._behind = self._behind, set()
            count = self._put_count
        try:
            self._database.write(((*key, text) for key, text in changes.items()), taken_over)
        except BaseException:
            with self._lock:
                # Changes noted during the failed write are newer and win.
                self._pending = changes | self._pending
                self._taken_over = taken_over | self._taken_over
                self._behind |= behind
            raise
        self._flushed_count = count
        self._files.note(behind)

    def _is_ours(self, table: type[ConfigFile]) -> bool:
        """Whether the database's table is at least as new as the file. If not, another program has written the file."""
        name = table.FILE_NAME
        if not self._database.is_filled(name):
            return False
        digests = self._database.digests(name)
        path = self.root / "config" / name
        digest = digest_of(path)
        if digest not in digests:
            fault = "missing" if digest is None else _fault(table, self.root)
            if fault is None:
                return False
            # A Java broker that is killed while saving leaves its last file only as `.bak`.
            backup = digest_of(path.with_name(f"{name}.bak"))
            if backup not in {None, *digests} and _is_readable(table, self.root):
                return False
            if digests:
                _log.warning("%s: %s; it is written anew from metadata.db", path, fault)
        # The file may lack the last changes of a killed broker.
        self._files.note([name])
        return True

    def _tell_of_changes(self, content: ConfigFile) -> None:
        """Logs how a file differs from the database's table. The content of the file will replace the table."""
        table = type(content)
        if not self.is_kept(table):
            return
        before = table.of_members(json.loads(self._database.text(table.FILE_NAME, table.MEMBER)))
        told = changes_told(before.to_json()[table.MEMBER], content.to_json()[table.MEMBER])
        if told:
            path = self.root / "config" / table.FILE_NAME
            text = "%s: another broker wrote it, or a person: it is taken in place of what metadata.db has; %s"
            _log.warning(text, path, told)

    def _take_over(self, table: ConfigFile) -> None:
        """Replaces the database's table by the content of the file."""
        members = table.other | table.to_json()
        entries = members.pop(table.MEMBER)
        with self._lock:
            # On a full disk, this is written later, and then completely in one transaction.
            self._taken_over[table.FILE_NAME] = digest_of(self.root / "config" / table.FILE_NAME)
            for kind, values in (("entry", entries), ("member", members)):
                rows = {(kind, table.FILE_NAME, str(name)): _json(value) for name, value in values.items()}
                self._pending.update(rows)
            self._put_count += 1
        self.flush_or_log()


def _fault(table: type[ConfigFile], root: Path) -> str | None:
    """Returns the reason why a file cannot be used. None if it can."""
    try:
        return table.fault(root)
    except StoreError as error:
        return str(error)


def _is_readable(table: type[ConfigFile], root: Path) -> bool:
    try:
        table.load(root)
    except StoreError:
        return False
    return True


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, separators=(",", ":"))


_MOST_NAMED = 5


def changes_told(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> str:
    """Returns text about how two tables differ: entries that are gone, new, changed, or have a lower offset."""
    changed = [name for name in before.keys() & after.keys() if before[name] != after[name]]
    back = [name for name in changed if _went_back(before[name], after[name])]
    kinds = {
        "gone": before.keys() - after.keys(),
        "with an earlier offset": back,
        "different": set(changed) - set(back),
        "new": after.keys() - before.keys(),
    }
    return "; ".join(f"{words}: {_list(names)}" for words, names in kinds.items() if names)


def _went_back(old: Any, new: Any) -> bool:
    if isinstance(old, int):
        return bool(new < old)
    if isinstance(old, Mapping) and all(isinstance(queue_id, int) for queue_id in old):
        return any(new.get(queue_id, -1) < offset for queue_id, offset in old.items())
    return False


def _list(names: Collection[Any]) -> str:
    texts = sorted(map(str, names))
    more = len(texts) - _MOST_NAMED
    return ", ".join(texts[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
