"""The metadata's SQLite database, below `config/` of the store.

| table | a row is |
|---|---|
| `rows`, kind "entry" | an entry of the map of a file, as a topic of `topics.json`: its key and its JSON |
| `rows`, kind "member" | another member of a file, as `dataVersion`: its name and its JSON |
| `digests` | what a file was, or was about to be, when this broker wrote it |
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from rmqfast.errors import StoreIOError
from rmqfast.system import set_mode

__all__ = ["Change", "Database"]

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

#: Kind, file, name and JSON of a row; None in place of JSON removes it.
Change = tuple[str, str, str, str | None]

_ROWS = "kind TEXT, file TEXT, name TEXT, value TEXT, PRIMARY KEY (file, kind, name)"
_SCHEMA = (
    f"CREATE TABLE IF NOT EXISTS rows ({_ROWS}) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS digests (number INTEGER PRIMARY KEY, file TEXT, digest TEXT)",
)
_NOTE = "INSERT INTO digests (file, digest) VALUES (?, ?)"
_PIECE = """
SELECT group_concat(json_quote(name) || ':' || value), max(name) FROM (
    SELECT name, value FROM rows WHERE file = ?1 AND kind = 'entry' AND (?2 IS NULL OR name > ?2)
    ORDER BY name LIMIT 1000
)
"""
_CONFIRM = """
DELETE FROM digests WHERE file = ?1
AND number NOT IN (SELECT number FROM digests WHERE file = ?1 ORDER BY number DESC LIMIT ?2)
"""
#: The file, its `.bak`, and what could not be written since.
_KEPT_DIGESTS = 16


class Database:
    """Rows by file and name; each `write` is on the disk as a whole or not at all. Any thread may call it.

    One that cannot be read is put aside as `metadata.db.damaged`: RocketMQ's files are there, and at most seconds old.
    One that cannot be opened now, as on a full disk, is tried again with each call.
    """

    def __init__(self, path: Path, permission: int) -> None:
        self._path = path
        self._permission = permission
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._is_closed = False

    def is_filled(self, file: str) -> bool:
        """Whether it has anything of a file."""
        query = "SELECT EXISTS (SELECT 1 FROM rows WHERE file = ?1) OR EXISTS (SELECT 1 FROM digests WHERE file = ?1)"
        return self._call(lambda db: bool(db.execute(query, (file,)).fetchone()[0]))

    def text(self, file: str, member: str) -> str:
        """A file as JSON.

        Args:
            file: Its name, as `topics.json`.
            member: The member of it that is a map of entries, as `topicConfigTable`.
        """
        entries: list[str] = []
        piece, last = self._piece(file, None)
        while piece is not None:  # piece by piece: whoever writes meanwhile waits for one piece only
            entries.append(piece)
            piece, last = self._piece(file, last)
        query = "SELECT json_quote(name) || ':' || value FROM rows WHERE file = ? AND kind = 'member'"
        members = [row[0] for row in self._call(lambda db: db.execute(query, (file,)).fetchall())]
        return "{" + ",".join([*members, f'"{member}":{{{",".join(entries)}}}']) + "}"

    def _piece(self, file: str, after: str | None) -> tuple[str | None, str | None]:
        """The next entries of a file, joined, and the name of the last one."""
        piece, last = self._call(lambda db: db.execute(_PIECE, (file, after)).fetchone())
        return piece, last

    def write(self, changes: Iterable[Change], taken_over: Mapping[str, str | None]) -> None:
        """Makes some changes, all of them or none.

        Args:
            changes: Rows to put or to remove, each once.
            taken_over: Files of which all rows go first, and what tells them from others; None for one not there.
        """
        puts, removals = [], []
        for change in changes:
            if change[-1] is None:
                removals.append(change[:-1])
            else:
                puts.append(change)

        def work(db: sqlite3.Connection) -> None:
            for file, digest in taken_over.items():
                db.execute("DELETE FROM rows WHERE file = ?", (file,))
                db.execute("DELETE FROM digests WHERE file = ?", (file,))
                if digest is not None:
                    db.execute(_NOTE, (file, digest))
            db.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?)", puts)
            db.executemany("DELETE FROM rows WHERE kind = ? AND file = ? AND name = ?", removals)

        self._call(lambda db: _in_transaction(db, work))

    def digests(self, file: str) -> set[str]:
        """What a file may be, if nobody else wrote it."""
        query = "SELECT digest FROM digests WHERE file = ?"
        return {row[0] for row in self._call(lambda db: db.execute(query, (file,)).fetchall())}

    def note_digest(self, file: str, digest: str) -> None:
        """Notes what a file is about to be."""
        self._call(lambda db: _in_transaction(db, lambda db: db.execute(_NOTE, (file, digest))))

    def confirm_digest(self, file: str) -> None:
        """Notes that a file is what it was about to be: what it was long ago counts no more."""
        self._call(lambda db: _in_transaction(db, lambda db: db.execute(_CONFIRM, (file, _KEPT_DIGESTS))))

    def close(self) -> None:
        """Ends it; what is called later raises `StoreIOError`."""
        with self._lock:
            self._is_closed = True
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _call(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Does something with the connection, once it is there.

        Raises:
            StoreIOError: The operating system or SQLite refused.
        """
        with self._lock:
            try:
                return work(self._opened())
            except sqlite3.Error as error:
                raise StoreIOError(f"{self._path}: {error}") from error

    def _opened(self) -> sqlite3.Connection:
        if self._is_closed:
            raise sqlite3.ProgrammingError("it is closed")
        if self._connection is None:
            try:
                self._connection = _connected(self._path, self._permission)
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise  # a full disk, no permission: it may be readable later
                self._put_aside(error)
                self._connection = _connected(self._path, self._permission)
        return self._connection

    def _put_aside(self, error: sqlite3.DatabaseError) -> None:
        damaged = self._path.with_name(f"{self._path.name}.damaged")
        _log.error("%s: %s; it is %s now, RocketMQ's files beside it are read instead", self._path, error, damaged)
        self._path.replace(damaged)
        # SQLite would play the old log into the new database
        self._path.with_name(f"{self._path.name}-wal").unlink(missing_ok=True)


def _connected(path: Path, permission: int) -> sqlite3.Connection:
    _create(path, permission)
    # Its users take turns by the lock above; a statement begins no transaction by itself.
    db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    try:
        # Alone on the file, SQLite keeps its index of the WAL in memory, and maps no file that others could cut off.
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("PRAGMA journal_mode = WAL")
        # an acknowledged topic must be there after a loss of power: WAL syncs with NORMAL at checkpoints only
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA fullfsync = ON")  # macOS syncs to the drive's own memory otherwise
        _in_transaction(db, _make_tables)
        _check(db)
    except BaseException:
        db.close()
        raise
    return db


def _create(path: Path, permission: int) -> None:
    """Makes an empty file where there is none: SQLite gives its mode to what it puts beside it."""
    may_enter = permission | (permission & 0o444) >> 2
    path.parent.mkdir(may_enter, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, permission)
        try:
            set_mode(file, permission)  # the umask has no say
        finally:
            os.close(file)


def _make_tables(db: sqlite3.Connection) -> None:
    for statement in _SCHEMA:
        db.execute(statement)


def _check(db: sqlite3.Connection) -> None:
    for (problem,) in db.execute("PRAGMA quick_check(1)"):
        if problem != "ok":
            raise sqlite3.DatabaseError(problem)


def _in_transaction(db: sqlite3.Connection, work: Callable[[sqlite3.Connection], object]) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        work(db)
        db.execute("COMMIT")
    except BaseException:
        db.rollback()
        raise
