"""The file of a history, an SQLite database: a watcher writes it, and others read it meanwhile."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from rmqfast.errors import CorruptError, StoreError, StoreIOError, StoreNotFoundError, UnsupportedStoreError
from rmqfast.paths import exists
from rmqfast.store.metadata.integrity import is_damage

#: "rmqh"
_APPLICATION = 0x726D7168
_VERSION = 1
_SCHEMA = """
CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE runs (id INTEGER PRIMARY KEY, broker INTEGER, grp INTEGER, last_ms INTEGER);
CREATE INDEX runs_by_group ON runs (grp, broker);
CREATE TABLE facts (
  id INTEGER PRIMARY KEY, run INTEGER, topic INTEGER, facts INTEGER, first_ms INTEGER, last_ms INTEGER
);
CREATE INDEX facts_by_run ON facts (run, topic);
CREATE INDEX facts_by_time ON facts (last_ms);
CREATE TABLE offsets (
  facts INTEGER, queue INTEGER, start INTEGER, stop INTEGER, PRIMARY KEY (facts, queue)
) WITHOUT ROWID;
"""
#: Seconds for which a reader or a writer waits for the other.
_PATIENCE = 5.0


class Extent(NamedTuple):
    """The size and the times of a history.

    Attributes:
        groups: Number of groups.
        rows: Number of rows that count for the bound.
        since: Time of the oldest look in milliseconds since 1970; `None` in an empty history.
        until: Time of the newest look.
    """

    groups: int
    rows: int
    since: int | None
    until: int | None


@contextmanager
def open_to_read(path: Path) -> Iterator[sqlite3.Connection]:
    """Yields the database of a history for reading.

    Raises:
        StoreNotFoundError: There is no such file.
        UnsupportedStoreError: It is no history, or one of another version.
        CorruptError: It is damaged.
        StoreIOError: The system does not let it be read.
    """
    if not exists(path):
        raise StoreNotFoundError(f"{path}: expected a history of `rmqfast watch`, got no such file")
    with errors_named(path):
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_PATIENCE, isolation_level=None)
        try:
            db.execute("PRAGMA trusted_schema = OFF")
            _check_format(db, path)
            yield db
        finally:
            db.close()


def open_to_write(path: Path) -> sqlite3.Connection:
    """Opens or makes the database of a history. Raises like `open_to_read`."""
    with errors_named(path):
        # The watcher starts and stops on one thread, and looks on another.
        db = sqlite3.connect(path, timeout=_PATIENCE, check_same_thread=False, isolation_level=None)
        try:
            db.execute("PRAGMA trusted_schema = OFF")
            if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                mark = f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {_VERSION};"
                db.executescript(f"BEGIN; {_SCHEMA} {mark} COMMIT;")
            _check_format(db, path)
            db.execute("PRAGMA journal_mode = WAL")  # readers do not stop the writer
            db.execute("PRAGMA synchronous = FULL")
        except BaseException:
            db.close()
            raise
    return db


def _check_format(db: sqlite3.Connection, path: Path) -> None:
    application, version = (
        int(db.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("application_id", "user_version")
    )
    if application != _APPLICATION:
        raise UnsupportedStoreError(f"{path}: expected a history of `rmqfast watch`, got another database")
    if version != _VERSION:
        raise UnsupportedStoreError(f"{path}: expected a history of version {_VERSION}, got version {version}")


@contextmanager
def errors_named(path: Path) -> Iterator[None]:
    """Raises SQLite's errors of the block as those of this package, with the file's name."""
    try:
        yield
    except StoreError:
        raise
    except sqlite3.DatabaseError as error:
        if is_damage(error, path):
            raise CorruptError(f"{path}: expected a history of `rmqfast watch`, got: {error}") from error
        raise StoreIOError(f"{path}: {error}") from error
    except (sqlite3.Error, OSError) as error:
        raise StoreIOError(f"{path}: {error}") from error


def extent_of(path: Path) -> Extent:
    """Returns what a history holds. Raises like `open_to_read`."""
    with open_to_read(path) as db:
        return extent(db)


def extent(db: sqlite3.Connection) -> Extent:
    (since,) = db.execute("SELECT min(first_ms) FROM facts").fetchone()
    groups, until = db.execute("SELECT count(DISTINCT grp), max(last_ms) FROM runs").fetchone()
    return Extent(groups, row_count(db), since, until)


def row_count(db: sqlite3.Connection) -> int:
    (count,) = db.execute("SELECT (SELECT count(*) FROM facts) + (SELECT count(*) FROM offsets)").fetchone()
    return int(count)
