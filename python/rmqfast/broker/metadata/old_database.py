"""Reads the tables of a database that version 0.1.0 wrote: rows without checksums."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

__all__ = ["SCHEMA", "drop", "rows"]

#: Name and text of each table, as SQLite keeps them.
SCHEMA = {
    "rows": "CREATE TABLE rows (kind TEXT, file TEXT, name TEXT, value TEXT, PRIMARY KEY (file, kind, name)) "
    "WITHOUT ROWID",
    "digests": "CREATE TABLE digests (number INTEGER PRIMARY KEY, file TEXT, digest TEXT)",
}
_ROWS = """
SELECT kind, file, name, value, json_valid(value) FROM rows
UNION ALL SELECT 'digest', file, printf('%020d', number), digest, length(digest) = 64 FROM digests
"""


def rows(db: sqlite3.Connection) -> Iterator[tuple[str, str, str, str]]:
    """Kind, file, name and value of each row.

    Raises:
        sqlite3.DatabaseError: A value is none that was ever written.
    """
    for kind, file, name, value, is_valid in db.execute(_ROWS):
        if not is_valid:
            raise sqlite3.DatabaseError(f"row {name!r} of {file!r} is no JSON")
        yield kind, file, name, value


def drop(db: sqlite3.Connection) -> None:
    """Removes the tables."""
    for name in SCHEMA:
        db.execute(f"DROP TABLE {name}")
