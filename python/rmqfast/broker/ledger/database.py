"""The SQLite database of the ledger, `config/ledger.db` of the store.

It is not part of `metadata.db`, of which each row is checked at each start and flushed to the disk at each change. A
ledger that is lost costs explanations, and no message.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from rmqfast.broker.metadata.database import create_file
from rmqfast.errors import StoreIOError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.store.metadata.integrity import is_damage
from rmqfast.store.metadata.transaction import in_transaction

_log = logger_of(__name__)
_T = TypeVar("_T")

_VERSION = 1
_SCHEMA = """
CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE stretches (
  id INTEGER PRIMARY KEY, kind INTEGER, grp INTEGER, topic INTEGER, queue INTEGER, client INTEGER, filter INTEGER,
  start INTEGER, stop INTEGER, first_ms INTEGER, last_ms INTEGER
);
CREATE INDEX stretches_by_place ON stretches (topic, queue, grp, start);
CREATE INDEX stretches_by_time ON stretches (last_ms);
CREATE TABLE subscriptions (
  grp INTEGER, client INTEGER, topic INTEGER, filter INTEGER, model TEXT, consume_type TEXT, first_ms INTEGER,
  last_ms INTEGER, UNIQUE (grp, client, topic, first_ms)
);
CREATE INDEX subscriptions_by_place ON subscriptions (topic, grp);
CREATE INDEX subscriptions_by_time ON subscriptions (last_ms);
CREATE TABLE gaps (start_ms INTEGER, stop_ms INTEGER);
CREATE TABLE state (name TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;
"""
_STRETCHES = """
SELECT stretches.id, kind, g.text, c.text, f.text, start, stop, first_ms, last_ms FROM stretches
JOIN texts g ON g.id = grp JOIN texts c ON c.id = client LEFT JOIN texts f ON f.id = filter
WHERE topic = (SELECT id FROM texts WHERE text = ?1) AND queue = ?2
AND (?3 IS NULL OR grp = (SELECT id FROM texts WHERE text = ?3))
AND ?4 BETWEEN min(start, stop) AND max(start, stop) - 1
ORDER BY stretches.id LIMIT ?5
"""
_SUBSCRIPTIONS = """
SELECT g.text, c.text, f.text, model, consume_type, first_ms, last_ms FROM subscriptions
JOIN texts g ON g.id = grp JOIN texts c ON c.id = client LEFT JOIN texts f ON f.id = filter
WHERE topic = (SELECT id FROM texts WHERE text = ?1) AND (?2 IS NULL OR grp = (SELECT id FROM texts WHERE text = ?2))
ORDER BY first_ms LIMIT ?3
"""
_REMOVE_TEXTS = """
DELETE FROM texts WHERE id NOT IN (
  SELECT grp FROM stretches UNION SELECT topic FROM stretches UNION SELECT client FROM stretches
  UNION SELECT filter FROM stretches WHERE filter IS NOT NULL
  UNION SELECT grp FROM subscriptions UNION SELECT client FROM subscriptions UNION SELECT topic FROM subscriptions
  UNION SELECT filter FROM subscriptions WHERE filter IS NOT NULL
)
"""
#: Rows that an answer has at most.
MOST_ROWS = 10_000
#: Rows that one deletion takes at most, so that no transaction takes long.
_PIECE = 10_000
#: Bytes that the file may have, and for each row that is allowed: more are those of long filters, each kept once.
_LEAST_BYTES, _BYTES_A_ROW = 1 << 20, 256
#: Rows that are removed before texts that no row has are looked for.
_REMOVED_BEFORE_TEXTS = 100_000


class Stretch(NamedTuple):
    """A row of the data plane's ledger.

    Attributes:
        kind: 0 a pull, 1 a commit, 2 a reset, 3 the first offset of the group.
        filter: Type of the filter, a colon, and its expression; None for commits.
    """

    id: int
    kind: int
    group: str
    topic: str
    queue_id: int
    client: str
    filter: str | None
    start: int
    stop: int
    first_ms: int
    last_ms: int


class MemberSubscription(NamedTuple):
    """A member's own subscription to a topic, as its heartbeats told it from `first_ms` to `last_ms`.

    `filter` is None if it is too long to keep.
    """

    group: str
    client: str
    topic: str
    filter: str | None
    model: str
    consume_type: str
    first_ms: int
    last_ms: int


class LedgerDatabase:
    """Rows of the ledger. Thread-safe. A damaged file is put aside, and a new one begins."""

    def __init__(self, path: Path, permission: int) -> None:
        self._path, self._permission = path, permission
        self._lock = QuietLock()
        self._ids: dict[str, int] = {}
        self._removed = 0
        self._db: sqlite3.Connection | None = None

    def open(self, now: int) -> int:
        """Opens the database. Returns the last number of a row. Notes a gap where a broker did not close it."""

        def begin(db: sqlite3.Connection) -> int:
            state = dict(db.execute("SELECT name, value FROM state"))
            if not state:
                db.execute("INSERT INTO state VALUES ('since', ?)", (now,))
            elif not state.get("is_closed"):
                db.execute("INSERT INTO gaps VALUES (?, ?)", (state.get("saved", state["since"]), now))
            db.execute("INSERT OR REPLACE INTO state VALUES ('is_closed', 0)")
            return int(db.execute("SELECT coalesce(max(id), 0) FROM stretches").fetchone()[0])

        return self._change(begin)

    def save(
        self, stretches: Iterable[Stretch], members: Iterable[MemberSubscription], gap: tuple[int, int] | None, now: int
    ) -> None:
        """Adds rows, or replaces those that have grown, in one transaction."""

        def work(db: sqlite3.Connection) -> None:
            def text(value: str | None) -> int | None:
                return None if value is None else self._id(db, value)

            db.executemany(
                "INSERT OR REPLACE INTO stretches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (
                        row.id,
                        row.kind,
                        text(row.group),
                        text(row.topic),
                        row.queue_id,
                        text(row.client),
                        text(row.filter),
                        *row[7:],
                    )
                    for row in stretches
                ),
            )
            db.executemany(
                "INSERT OR REPLACE INTO subscriptions VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                ((text(row.group), text(row.client), text(row.topic), text(row.filter), *row[4:]) for row in members),
            )
            if gap is not None:
                db.execute("INSERT INTO gaps VALUES (?, ?)", gap)
            db.execute("INSERT OR REPLACE INTO state VALUES ('saved', ?)", (now,))

        self._change(work)

    def remove_topic(self, topic: str) -> None:
        """Removes the rows of a topic, but not what members want of it."""
        remove = "DELETE FROM stretches WHERE topic = (SELECT id FROM texts WHERE text = ?)"
        self._change(lambda db: db.execute(remove, (topic,)))

    def trim(self, *, most_rows: int, oldest_ms: int) -> None:
        """Removes old rows, and the oldest of too many. Remembers since when the ledger is complete."""
        while self._change(lambda db: self._trim_piece(db, most_rows, oldest_ms)) >= _PIECE:
            pass

    def _trim_piece(self, db: sqlite3.Connection, most_rows: int, oldest_ms: int) -> int:
        """Removes rows of one transaction. Returns their number."""
        is_large = _used_bytes(db) > _LEAST_BYTES + most_rows * _BYTES_A_ROW
        ends = [_end_of_excess(db, table, most_rows, is_large=is_large) for table in ("stretches", "subscriptions")]
        until = max(oldest_ms, *ends)
        removed = sum(
            db.execute(
                f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE last_ms < ? LIMIT ?)",  # noqa: S608
                (until, _PIECE),
            ).rowcount
            for table in ("stretches", "subscriptions")
        )
        db.execute("DELETE FROM gaps WHERE stop_ms < ?", (until,))
        if removed:
            db.execute("UPDATE state SET value = max(value, ?) WHERE name = 'since'", (until,))
        self._removed += removed
        # Each look for texts that no row has reads all rows.
        if is_large or self._removed >= _REMOVED_BEFORE_TEXTS:
            db.execute(_REMOVE_TEXTS)
            self._ids.clear()
            self._removed = 0
        return removed

    def stretches(
        self, topic: str, queue_id: int, group: str | None, offset: int
    ) -> tuple[list[tuple[Any, ...]], bool]:
        """Returns the rows that cover an offset, and whether there are more than `MOST_ROWS`.

        A row has: number, kind, group, client, filter, start, stop, first and last time.
        """
        return self._select(_STRETCHES, topic, queue_id, group, offset)

    def subscriptions(self, topic: str, group: str | None) -> tuple[list[tuple[Any, ...]], bool]:
        """Returns the members' subscriptions, and whether there are more than `MOST_ROWS`.

        A row has: group, client, filter, model, consume type, first and last time.
        """
        return self._select(_SUBSCRIPTIONS, topic, group)

    def _select(self, query: str, *values: object) -> tuple[list[tuple[Any, ...]], bool]:
        rows = self._call(lambda db: db.execute(query, (*values, MOST_ROWS + 1)).fetchall())
        return rows[:MOST_ROWS], len(rows) > MOST_ROWS

    def reach(self) -> tuple[int, Sequence[tuple[int, int]]]:
        """Returns since when the ledger is complete, and the gaps behind it."""

        def work(db: sqlite3.Connection) -> tuple[int, Sequence[tuple[int, int]]]:
            since = db.execute("SELECT value FROM state WHERE name = 'since'").fetchone()[0]
            return int(since), db.execute("SELECT start_ms, stop_ms FROM gaps ORDER BY start_ms").fetchall()

        return self._call(work)

    def close(self, *, is_whole: bool = True) -> None:
        """Closes the database, and notes that nothing is missing if `is_whole`. May be called twice."""
        if is_whole and self._db is not None:
            # Without the note, the next start tells a gap.
            with suppress(StoreIOError):
                self._change(lambda db: db.execute("INSERT OR REPLACE INTO state VALUES ('is_closed', 1)"))
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def _id(self, db: sqlite3.Connection, text: str) -> int:
        known = self._ids.get(text)
        if known is None:
            db.execute("INSERT OR IGNORE INTO texts (text) VALUES (?)", (text,))
            known = int(db.execute("SELECT id FROM texts WHERE text = ?", (text,)).fetchone()[0])
            self._ids[text] = known
        return known

    def _change(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        def transact(db: sqlite3.Connection) -> _T:
            try:
                return in_transaction(db, work)
            except BaseException:
                # A text of the transaction has no row now.
                self._ids.clear()
                raise

        return self._call(transact)

    def _call(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        with self._lock:
            try:
                if self._db is None:
                    self._db = self._connect()
                return work(self._db)
            except (sqlite3.Error, OSError) as error:
                raise StoreIOError(f"{self._path}: {error}") from error

    def _connect(self) -> sqlite3.Connection:
        try:
            return self._open_file()
        except sqlite3.DatabaseError as error:
            if not is_damage(error, self._path):
                raise  # such as a full disk
            damaged = self._path.with_name(f"{self._path.name}.damaged")
            _log.warning("%s: %s; it is %s now, and the ledger begins anew", self._path, error, damaged)
            self._path.replace(damaged)
            # SQLite would replay the old log into the new database.
            self._path.with_name(f"{self._path.name}-wal").unlink(missing_ok=True)
            return self._open_file()

    def _open_file(self) -> sqlite3.Connection:
        create_file(self._path, self._permission)
        db = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None)
        try:
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            _create_tables(db)
        except BaseException:
            db.close()
            raise
        return db


def _used_bytes(db: sqlite3.Connection) -> int:
    pages, free, size = (
        int(db.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def _end_of_excess(db: sqlite3.Connection, table: str, most_rows: int, *, is_large: bool) -> int:
    """Returns the time before which rows are too many; 0 if there are none."""
    count = int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608 - one of two names
    excess = min(_PIECE, max(count - most_rows, count // 10 if is_large else 0))
    if excess <= 0:
        return 0
    oldest = f"SELECT last_ms FROM {table} ORDER BY last_ms LIMIT ?"  # noqa: S608
    (last,) = db.execute(f"SELECT max(last_ms) FROM ({oldest})", (excess,)).fetchone()  # noqa: S608
    return 0 if last is None else int(last) + 1


def _create_tables(db: sqlite3.Connection) -> None:
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version == 0:
        db.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {_VERSION}; COMMIT;")
    elif version != _VERSION:
        raise sqlite3.DatabaseError(f"version {version}: expected {_VERSION}")
