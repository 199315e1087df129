"""Transactions of SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def in_transaction(db: sqlite3.Connection, work: Callable[[sqlite3.Connection], _T]) -> _T:
    """Does some work in a transaction, which an error takes back."""
    db.execute("BEGIN IMMEDIATE")
    try:
        result = work(db)
        db.execute("COMMIT")
    except BaseException:
        db.rollback()
        raise
    return result
