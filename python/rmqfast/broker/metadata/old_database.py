"""Reads the tables of a database of version 0.1.0, in which rows have no checksums."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from rmqfast.store.metadata.integrity import OLD_SCHEMA

_ROWS = """
SELECT kind, file, name, value, json_valid(value) FROM rows
UNION ALL SELECT 'digest', file, printf('%020d', number), digest, length(digest) = 64 FROM digests
"""


def rows(db: sqlite3.Connection) -> Iterator[tuple[str, str, str, str]]:
    """Yields the kind, file, name and value of each row."""
    for kind, file, name, value, is_valid in db.execute(_ROWS):
        if not is_valid:
            raise sqlite3.DatabaseError(f"row {name!r} of {file!r} is no JSON")
        yield kind, file, name, value


def drop(db: sqlite3.Connection) -> None:
    for name in OLD_SCHEMA:
        db.execute(f"DROP TABLE {name}")
