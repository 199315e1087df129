"""The SQLite database of the metadata, in `config/` of the store.

| table | a row is |
|---|---|
| `entries`, kind "entry" | an entry of the map of a file, as a topic of `topics.json`: its key and its JSON |
| `entries`, kind "member" | another member of a file, as `dataVersion`: its name and its JSON |
| `entries`, kind "digest" | what a file was, or was about to be, when this broker wrote it: a number and the digest |
| `sums` | the sum of the checksums of a file's rows; without a file: how many changes there were |
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from rmqfast.errors import CorruptError, StoreIOError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.paths import exists
from rmqfast.store.metadata.integrity import (
    COUNT,
    OLD_SCHEMA,
    SCHEMA,
    ChangeCount,
    LostChangesError,
    changes_of,
    check_row,
    checksum,
    is_damage,
    schemas_of,
    to_signed,
    verify_count,
    verify_log,
    verify_rows,
    verify_size,
    verify_structure,
)
from rmqfast.store.metadata.transaction import in_transaction
from rmqfast.system import set_mode

_log = logger_of(__name__)
_T = TypeVar("_T")

#: Kind, file, name and JSON of a row; None as JSON removes the row.
Change = tuple[str, str, str, str | None]

_OLD_ROWS = """
SELECT kind, file, name, value, json_valid(value) FROM rows
UNION ALL SELECT 'digest', file, printf('%020d', number), digest, length(digest) = 64 FROM digests
"""
_PIECE = """
SELECT name, value, checksum FROM entries WHERE file = ?1 AND kind = ?2 AND (?3 IS NULL OR name > ?3)
ORDER BY name LIMIT 1000
"""
_STORED = "SELECT checksum FROM entries WHERE file = ? AND kind = ? AND name = ?"
_PUT = "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)"
_COUNTED = "INSERT INTO sums VALUES (?, 1) ON CONFLICT (file) DO UPDATE SET sum = sum + 1 RETURNING sum"
_REMOVE = "DELETE FROM entries WHERE file = ? AND kind = ? AND name = ?"
#: Kept digests: of the file, its `.bak`, and versions that could not be written since.
_KEPT_DIGESTS = 16


class Database:
    """The rows of the database, by file and name. Each `write` is one transaction. Thread-safe.

    A damaged database is renamed to `metadata.db.damaged`, since RocketMQ's files are at most seconds old. If it cannot
    be opened now, for instance on a full disk, each call tries again. `is_blank` says that no broker has written to it
    yet, as far as known.
    """

    def __init__(self, path: Path, permission: int, files: Sequence[str]) -> None:
        self.is_blank: bool = False
        self._path = path
        self._permission = permission
        self._files = files
        self._count = ChangeCount(path)
        self._lock = QuietLock()
        self._connection: sqlite3.Connection | None = None
        self._is_closed = False

    def is_filled(self, file: str) -> bool:
        """Whether the database has rows for a file."""
        query = "SELECT EXISTS (SELECT 1 FROM entries WHERE file = ?)"
        return self._call(lambda db: bool(db.execute(query, (file,)).fetchone()[0]))

    def text(self, file: str, member: str) -> str:
        """Returns the content of a file as JSON."""
        entries, members = (",".join(self._pairs(file, kind)) for kind in ("entry", "member"))
        return "{" + (members and f"{members},") + f'"{member}":{{{entries}}}' + "}"

    def _pairs(self, file: str, kind: str) -> Iterable[str]:
        # In pieces, so that concurrent writers wait for one piece only.
        piece = self._piece(file, kind, None)
        while piece:
            for name, value, stored in piece:
                yield f"{json.dumps(name)}:{self._check_row(kind, file, name, value, stored)}"
            piece = self._piece(file, kind, piece[-1][0])

    def _piece(self, file: str, kind: str, after: str | None) -> list[tuple[str, str, int]]:
        return self._call(lambda db: db.execute(_PIECE, (file, kind, after)).fetchall())

    def _check_row(self, kind: str, file: str, name: str, value: str, stored: int) -> str:
        try:
            return check_row(kind, file, name, value, stored)
        except sqlite3.DatabaseError as error:  # damaged since the database was opened
            raise StoreIOError(f"{self._path}: {error}") from error

    def write(self, changes: Iterable[Change], taken_over: Mapping[str, str | None]) -> None:
        """Writes changes in one transaction."""
        rows = list(changes)

        def work(db: sqlite3.Connection) -> None:
            for file, digest in taken_over.items():
                _clear(db, file)
                if digest is not None:
                    _note(db, file, digest)
            _change(db, rows)

        self._call(lambda db: self._change(db, work))

    def digests(self, file: str) -> set[str]:
        """Returns the digests that a file can have if only this broker has written it."""
        return {value for _, value in self._call(lambda db: _digests(db, file))}

    def note_digest(self, file: str, digest: str) -> None:
        """Records the digest of a file. Called before the file is written."""
        self._call(lambda db: self._change(db, lambda db: _note(db, file, digest)))

    def confirm_digest(self, file: str) -> None:
        """Drops the oldest digests of a file. Called after the file was written."""

        def work(db: sqlite3.Connection) -> None:
            _change(db, [("digest", file, name, None) for name, _ in _digests(db, file)[:-_KEPT_DIGESTS]])

        self._call(lambda db: self._change(db, work))

    def close(self) -> None:
        """Closes the database. Later calls raise `StoreIOError`."""
        with self._lock:
            self._is_closed = True
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _change(self, db: sqlite3.Connection, work: Callable[[sqlite3.Connection], object]) -> None:
        def count(db: sqlite3.Connection) -> int:
            work(db)
            return int(db.execute(_COUNTED, (COUNT,)).fetchone()[0])

        self._count.write(in_transaction(db, count))

    def _call(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Calls `work` with the connection and returns its result. Opens the connection if needed."""
        with self._lock:
            try:
                return work(self._open())
            except sqlite3.Error as error:
                raise StoreIOError(f"{self._path}: {_reason(self._path) or error}") from error
            except OSError as error:
                raise StoreIOError(f"{self._path}: {error}") from error

    def _open(self) -> sqlite3.Connection:
        if self._is_closed:
            raise sqlite3.ProgrammingError("it is closed")
        if self._connection is None:
            try:
                self._connection = self._connect()
            except sqlite3.DatabaseError as error:
                if not is_damage(error, self._path):
                    raise  # not damage, such as a full disk: may be readable later
                self._put_aside(error)
                self._connection = self._connect()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        is_new = create_file(self._path, self._permission)
        self.is_blank = verify_size(self._path) == 0
        if self.is_blank and not is_new:
            _log.warning(
                "%s: empty, as after a kill in a broker's first second or a loss: RocketMQ's files are read", self._path
            )
        # The lock above serializes all users; without an isolation level, no statement begins a transaction by itself.
        db = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None)
        try:
            # With exclusive access, SQLite keeps the WAL index in memory and maps no file that others could truncate.
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            db.execute("PRAGMA journal_mode = WAL")
            # An acknowledged topic must survive a power loss; with NORMAL, the WAL is synced only at checkpoints.
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA fullfsync = ON")  # otherwise macOS syncs only to the drive's cache
            verify_structure(db)
            tables = dict(db.execute("SELECT name, sql FROM sqlite_master"))
            self.is_blank = not tables
            note = verify_log(db, self._path)
            if note is not None:
                _log.warning("%s", note)
            in_transaction(db, lambda db: _prepare(db, tables))
            self._compare_count(db)
        except UnicodeDecodeError as error:
            db.close()
            # SQLite's message quotes the schema, which Python fails to decode.
            raise sqlite3.DatabaseError(f"its schema is no UTF-8: {error.reason}") from error
        except BaseException:
            db.close()
            raise
        return db

    def _compare_count(self, db: sqlite3.Connection) -> None:
        """Logs an error if the database has fewer changes than were counted. Continues with the database's number."""
        known = self._count.read()
        try:
            verify_count(db, self._count, known)
        except LostChangesError as error:
            _log.error("%s", error)
        if known is None:
            with suppress(OSError):  # without this file, only less damage is detected
                self._count.path.unlink(missing_ok=True)
                create_file(self._count.path, self._permission)
        self._count.write(changes_of(db))

    def _put_aside(self, error: sqlite3.DatabaseError) -> None:
        config = self._path.parent
        there = [file for file in self._files if any(exists(config / name) for name in (file, f"{file}.bak"))]
        if not there:
            raise CorruptError(
                f"{self._path}: damaged ({error}), and none of RocketMQ's files is beside it: put {self._files[0]} and "
                "the others of a backup there, or remove it to begin without topics, groups and offsets"
            )
        damaged = self._path.with_name(f"{self._path.name}.damaged")
        missing = [file for file in self._files if file not in there]
        _log.error(
            "%s: %s; it is %s now, RocketMQ's files beside it are read instead (%s): they lack at most what changed "
            "in the last seconds before a kill%s",
            self._path,
            error,
            damaged,
            ", ".join(there),
            f"; not there, and so empty: {', '.join(missing)}" if missing else "",
        )
        self._path.replace(damaged)
        self._count.write(0)
        # SQLite would replay the old log into the new database.
        for suffix in ("-wal", "-journal"):
            with suppress(FileNotFoundError):
                self._path.with_name(f"{self._path.name}{suffix}").replace(f"{damaged}{suffix}")


def create_file(path: Path, permission: int) -> bool:
    """Creates an empty file. Returns False if it exists. SQLite gives the files beside it the same mode."""
    # A directory needs the execute bit wherever its files have the read bit.
    may_enter = permission | (permission & 0o444) >> 2
    path.parent.mkdir(may_enter, parents=True, exist_ok=True)
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, permission)
    except FileExistsError:
        return False
    try:
        set_mode(file, permission)  # regardless of the umask
    finally:
        os.close(file)
    return True


def _reason(path: Path) -> str | None:
    """Returns the reason why the system does not open a file, since SQLite does not tell it."""
    try:
        with path.open("r+b"):
            return None
    except OSError as error:
        return error.strerror


def _prepare(db: sqlite3.Connection, tables: Mapping[str, str]) -> None:
    """Creates the tables. If they exist, checks their contents."""
    is_old, is_new = schemas_of(tables)
    if is_new:
        verify_rows(db)
    else:
        for statement in SCHEMA.values():
            db.execute(statement)
    if is_old:
        rows = list(_old_rows(db))
        for file in {file for _, file, _, _ in rows}:  # an older broker wrote these files last
            _clear(db, file)
        _change(db, rows)
        _drop_old(db)


def _old_rows(db: sqlite3.Connection) -> Iterator[tuple[str, str, str, str]]:
    """Yields kind, file, name and value of each row of a database of version 0.1.0, whose rows have no checksums."""
    for kind, file, name, value, is_valid in db.execute(_OLD_ROWS):
        if not is_valid:
            raise sqlite3.DatabaseError(f"row {name!r} of {file!r} is no JSON")
        yield kind, file, name, value


def _drop_old(db: sqlite3.Connection) -> None:
    for name in OLD_SCHEMA:
        db.execute(f"DROP TABLE {name}")


def _change(db: sqlite3.Connection, rows: Iterable[Change]) -> None:
    # Each file's sum of checksums must change together with its rows.
    sums: Counter[str] = Counter()
    for kind, file, name, value in rows:
        before = db.execute(_STORED, (file, kind, name)).fetchone()
        if before is not None:
            sums[file] -= before[0]
        if value is not None:
            stored = checksum(kind, file, name, value)
            sums[file] += stored
            db.execute(_PUT, (kind, file, name, value, stored))
        elif before is not None:
            db.execute(_REMOVE, (file, kind, name))
    for file, more in sums.items():
        before = db.execute("SELECT sum FROM sums WHERE file = ?", (file,)).fetchone() or (0,)
        db.execute("INSERT OR REPLACE INTO sums VALUES (?, ?)", (file, to_signed(before[0] + more)))


def _clear(db: sqlite3.Connection, file: str) -> None:
    db.execute("DELETE FROM entries WHERE file = ?", (file,))
    db.execute("DELETE FROM sums WHERE file = ?", (file,))


def _digests(db: sqlite3.Connection, file: str) -> list[tuple[str, str]]:
    query = "SELECT name, value FROM entries WHERE file = ? AND kind = 'digest' ORDER BY name"
    return db.execute(query, (file,)).fetchall()


def _note(db: sqlite3.Connection, file: str, digest: str) -> None:
    last = _digests(db, file)[-1:]
    # Numbers are zero-padded, so that they sort as strings.
    number = int(last[0][0]) + 1 if last else 1
    _change(db, [("digest", file, f"{number:020d}", digest)])
