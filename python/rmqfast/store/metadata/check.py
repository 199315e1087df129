"""Checks `config/metadata.db` of a store. Works on a copy, so that a running broker is not disturbed."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Final

from rmqfast.errors import StoreIOError
from rmqfast.message import Damage
from rmqfast.paths import exists, list_directory
from rmqfast.store.metadata.integrity import (
    ChangeCount,
    LostChangesError,
    digest_of,
    is_damage,
    schemas_of,
    verify_count,
    verify_log,
    verify_rows,
    verify_size,
    verify_structure,
)

#: Descriptions of damage, and notes for the user.
Findings = tuple[list[Damage], list[str]]
_NAME = "metadata.db"
_FOREIGN: Final = f"another broker wrote it, or a person: rmqfast's next one takes it in place of what {_NAME} has"
_CONSEQUENCE: Final = "a broker that starts puts it aside, and reads RocketMQ's files"
#: A running broker checkpoints its log now and then: a copy taken meanwhile may look damaged, so try again.
_TRIES = 20


def check_metadata(root: Path) -> Findings:
    """Returns the damage of a store's metadata database, and notes for the user. Takes no lock and writes nothing."""
    database = root / "config" / _NAME
    count = ChangeCount(database)
    try:
        known = count.read()
        if not exists(database) or database.stat().st_size == 0:
            return _of_an_empty_one(count, known)
        # before the copy: the database has the digest of each file before the file is written
        digests = {path.name: digest_of(path) for path in _files(database.parent)}
        # outside of the store, which is never written to
        with tempfile.TemporaryDirectory(prefix="rmqfast-") as directory:
            copy = Path(directory) / _NAME
            if not _copy_database(database, copy):
                return [], [f"{database}: not checked, as a broker changes it all the time"]
            return _check_copy(database, copy, (count, known), digests)
    except OSError as error:
        raise StoreIOError(error.errno, str(error.strerror).lower(), str(error.filename or database)) from error


def _of_an_empty_one(count: ChangeCount, known: int | None) -> Findings:
    # a broker that was just created has no changes yet
    is_new = known == 0 or (known is None and not exists(count.path))
    if is_new and not exists(count.database.with_name(f"{_NAME}-wal")):
        return [], []
    changes = "some" if known is None else known
    reason = f"missing or empty, and had {changes} changes: a broker that starts reads RocketMQ's files instead"
    return [Damage(0, 0, reason, str(count.database))], []


def _files(config: Path) -> list[Path]:
    return [path for path in list_directory(config) if path.name.endswith(".json") and path.is_file()]


def _copy_database(database: Path, copy: Path) -> bool:
    for _ in range(_TRIES):
        before = _stamps(database)
        for suffix in ("", "-wal", "-journal"):
            source = database.with_name(f"{database.name}{suffix}")
            target = copy.with_name(f"{copy.name}{suffix}")
            target.unlink(missing_ok=True)
            if source.exists():
                shutil.copyfile(source, target)
        # unchanged during the copy: database and log belong together
        if _stamps(database) == before:
            return True
    return False


def _stamps(database: Path) -> list[tuple[int, int] | None]:
    return [_stamp(database.with_name(f"{database.name}{suffix}")) for suffix in ("", "-wal", "-journal")]


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns


def _check_copy(
    database: Path, copy: Path, counted: tuple[ChangeCount, int | None], digests: dict[str, str | None]
) -> Findings:
    try:
        verify_size(copy)
        with closing(sqlite3.connect(copy, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            verify_structure(db)
            note = verify_log(db, copy)
            notes = [] if note is None else [f"{database}: {note}"]
            tables = dict(db.execute("SELECT name, sql FROM sqlite_master"))
            _, is_new = schemas_of(tables)
            if is_new:
                verify_rows(db)
                notes += [f"{database.with_name(name)}: {_FOREIGN}" for name in _foreign(db, digests)]
                verify_count(db, *counted)
            elif not tables:
                return _of_an_empty_one(*counted)
    except LostChangesError as error:
        return [Damage(0, 0, error.reason, str(error.path))], []
    except UnicodeDecodeError as error:
        return [Damage(0, 0, f"its schema is no UTF-8: {error.reason}; {_CONSEQUENCE}", str(database))], []
    except sqlite3.DatabaseError as error:
        if not is_damage(error, copy):
            raise StoreIOError(f"{database}: {error}") from error
        return [Damage(0, 0, f"{error}; {_CONSEQUENCE}", str(database))], []
    return [], notes


def _foreign(db: sqlite3.Connection, digests: dict[str, str | None]) -> list[str]:
    known = set(db.execute("SELECT file, value FROM entries WHERE kind = 'digest'"))
    written = {file for file, _ in known}
    return [
        name
        for name, digest in digests.items()
        if digest is not None and name in written and (name, digest) not in known
    ]
