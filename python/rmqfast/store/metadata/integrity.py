"""Checks that a metadata database has everything that was written to it. SQLite has no checksums of pages.

Each row has a checksum, and each file the sum of its rows' checksums, so changed, lost or outdated rows are detected.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

from rmqfast.errors import StoreIOError
from rmqfast.paths import exists

_DIGITS = 20


class ChangeCount:
    """The file `metadata.db-count`. It has a decimal number of fixed width, which is overwritten in place.

    Attributes:
        database: The database whose changes are counted.
        path: The file.
    """

    def __init__(self, database: Path) -> None:
        self.database: Final = database
        self.path: Final = database.with_name(f"{database.name}-count")

    def read(self) -> int | None:
        """Returns the number of changes. None if the file is missing or invalid."""
        try:
            text = self.path.read_bytes()[: _DIGITS + 1]
        except FileNotFoundError:
            return None
        # another length is a torn write
        return int(text) if len(text) == _DIGITS and text.isdigit() else None

    def write(self, count: int) -> None:
        # a count that is too low only weakens the check
        with suppress(OSError):
            # neither truncated nor created: the number is overwritten in place
            file = os.open(self.path, os.O_WRONLY)
            try:
                os.write(file, b"%0*d" % (_DIGITS, count))
            finally:
                os.close(file)


def digest_of(path: Path) -> str | None:
    """Returns the digest of a file. None if the file does not exist."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreIOError(error.errno, str(error.strerror).lower(), str(path)) from error


#: Names of tables and their SQL, as stored in `sqlite_master`.
SCHEMA = {
    "entries": "CREATE TABLE entries (kind TEXT, file TEXT, name TEXT, value TEXT, checksum INTEGER, "
    "PRIMARY KEY (file, kind, name)) WITHOUT ROWID",
    "sums": "CREATE TABLE sums (file TEXT PRIMARY KEY, sum INTEGER) WITHOUT ROWID",
}
#: The tables of version 0.1.0, whose rows have no checksums.
OLD_SCHEMA = {
    "rows": "CREATE TABLE rows (kind TEXT, file TEXT, name TEXT, value TEXT, PRIMARY KEY (file, kind, name)) "
    "WITHOUT ROWID",
    "digests": "CREATE TABLE digests (number INTEGER PRIMARY KEY, file TEXT, digest TEXT)",
}
#: The key in `sums` of the number of changes, where other keys are files.
COUNT = ""
#: Errors of the system, which say nothing about damage of the database.
_REFUSALS = {
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOLFS,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
}
_SMALLEST_PAGE = 512
# https://sqlite.org/fileformat2.html#the_write_ahead_log
_LOG_HEADER = struct.Struct(">6I")
_LOG_HEADER_SIZE = 32
_FRAME_HEADER = struct.Struct(">2I8s")
_FRAME_HEADER_SIZE = 24
_BIG_ENDIAN_MAGIC = 0x377F0683


class LostChangesError(Exception):
    """The database lacks changes, or it is unknown how many changes it should have."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path: Final = path
        self.reason: Final = reason


def checksum(kind: str, file: str, name: str, value: str) -> int:
    # separated by NUL, so that moved characters change the checksum
    text = f"{kind}\0{file}\0{name}\0{value}".encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big", signed=True)


def to_signed(total: int) -> int:
    """Returns a sum of checksums as SQLite's signed 64-bit integer. Larger sums wrap around."""
    return (total + (1 << 63)) % (1 << 64) - (1 << 63)


def check_row(kind: str, file: str, name: str, value: str, stored: int) -> str:
    """Returns the value of a row. Raises an error if its checksum is wrong."""
    texts = (kind, file, name, value)
    if any(not isinstance(text, str) for text in texts) or checksum(*texts) != stored:
        raise sqlite3.DatabaseError(f"row {name!r} of {file!r} contradicts its checksum")
    return value


def verify_size(path: Path) -> int:
    """Returns a database's size in bytes. Raises an error for a cut file, which SQLite would take for a new one."""
    size = path.stat().st_size
    log = path.with_name(f"{path.name}-wal")
    if 0 < size < _SMALLEST_PAGE or (size == 0 and exists(log) and log.stat().st_size > 0):
        raise sqlite3.DatabaseError(f"expected its first page, got {size} bytes")
    return size


def verify_structure(db: sqlite3.Connection) -> None:
    """Runs SQLite's integrity check, and also looks up rows by key, since pages may have been swapped."""
    for (problem,) in db.execute("PRAGMA integrity_check(1)"):
        if problem != "ok":
            raise sqlite3.DatabaseError(problem)


def schemas_of(tables: Mapping[str, str]) -> tuple[bool, bool]:
    """Returns whether tables have the schema of version 0.1.0, and whether tables have the current schema."""
    is_old, is_new = (schema.items() <= tables.items() for schema in (OLD_SCHEMA, SCHEMA))
    if tables != (OLD_SCHEMA if is_old else {}) | (SCHEMA if is_new else {}):
        raise sqlite3.DatabaseError(f"unknown tables: {', '.join(sorted(map(str, tables)))}")
    return is_old, is_new


def verify_rows(db: sqlite3.Connection) -> None:
    """Checks the checksum of each row, and the sums by which lost rows are detected."""
    totals: Counter[str] = Counter()
    for kind, file, name, value, stored in db.execute("SELECT kind, file, name, value, checksum FROM entries"):
        check_row(kind, file, name, value, stored)
        totals[file] += stored
    expected = dict(db.execute("SELECT file, sum FROM sums WHERE file <> ?", (COUNT,)))
    for file in totals.keys() | expected.keys():
        total = to_signed(totals[file])
        if total != expected.get(file, 0):
            raise sqlite3.DatabaseError(
                f"rows of {file!r} are missing or old: expected checksums of sum {expected.get(file, 0)}, got {total}"
            )


def verify_log(db: sqlite3.Connection, path: Path) -> str | None:
    """Checks that SQLite has read the whole write-ahead log, since it stops silently at a damaged frame.

    Returns a note for the user, or None. Raises `sqlite3.DatabaseError` if the log is damaged.
    """
    try:
        _, frames, _ = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.OperationalError as error:
        # the low byte is the primary code, without the extended one
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_FULL:
            raise
        return f"the write-ahead log of {path.name} was not checked: {error}"
    try:
        with path.with_name(f"{path.name}-wal").open("rb") as log:
            header = log.read(_LOG_HEADER_SIZE)
            # an empty log has nothing to check
            if len(header) < _LOG_HEADER_SIZE or not log.read(1):
                return None
            if not _is_header(header):
                raise sqlite3.DatabaseError("the header of its write-ahead log contradicts its checksum")
            size = _FRAME_HEADER_SIZE + _LOG_HEADER.unpack_from(header)[2]
            # the first frame that SQLite did not read
            log.seek(_LOG_HEADER_SIZE + max(frames, 0) * size)
            is_torn = _ends_torn(iter(lambda: log.read(size), b""), size, salt=header[16:24])
    except FileNotFoundError:
        return None
    if not is_torn:
        return None
    return f"the last change of {path.name} is torn, as after a loss of power: the one before it counts"


def verify_count(db: sqlite3.Connection, count: ChangeCount, known: int | None) -> None:
    """Checks that the database has at least as many changes as were counted."""
    changes = changes_of(db)
    if known is None and (changes or exists(count.path)):
        reason = f"expected a number, got none: nothing tells whether {count.database.name} is an older one"
        raise LostChangesError(count.path, reason)
    if known is not None and known > changes:
        raise LostChangesError(
            count.database,
            f"it has {changes} changes, and had {known}: its write-ahead log is lost, or an older one was put in its "
            "place; topics, groups and offsets are those of an earlier time, or of RocketMQ's files if these are newer",
        )


def changes_of(db: sqlite3.Connection) -> int:
    found = db.execute("SELECT sum FROM sums WHERE file = ?", (COUNT,)).fetchone()
    return 0 if found is None else int(found[0])


def is_damage(error: sqlite3.DatabaseError, path: Path) -> bool:
    # Python's own errors have none, as of invalid UTF-8
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return True
    # a damaged bit of the header also causes READONLY
    if code & 0xFF == sqlite3.SQLITE_READONLY:
        # with write permission, READONLY can only come from the header
        return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    return code & 0xFF not in _REFUSALS


def _is_header(header: bytes) -> bool:
    # SQLite's checksum of the first 24 bytes, in the byte order that the magic number shows
    order = ">" if _LOG_HEADER.unpack_from(header)[0] == _BIG_ENDIAN_MAGIC else "<"
    first = second = 0
    words = struct.unpack_from(f"{order}6I", header)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return struct.unpack_from(">2I", header, _LOG_HEADER.size) == (first, second)


def _ends_torn(frames: Iterable[bytes], size: int, *, salt: bytes) -> bool:
    """Returns whether exactly one change follows the last change that SQLite has read.

    A change starts only after the previous one was flushed, so at most one complete change can be a torn write.
    """
    is_torn = False
    for frame in frames:
        if len(frame) < size:
            break
        _, pages, frame_salt = _FRAME_HEADER.unpack_from(frame)
        # a frame of an earlier log, which this log has not overwritten yet
        if frame_salt != salt:
            continue
        if is_torn:
            raise sqlite3.DatabaseError("a frame of its write-ahead log contradicts its checksum")
        # only the last frame of a change holds the number of pages
        is_torn = pages > 0
    return is_torn
