"""Writes the history of a cluster: a row for each change, none for a look that shows the same."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple, TypeVar

from rmqfast.admin.history.history_file import errors_named, open_to_write, row_count
from rmqfast.errors import StoreBusyError, StoreError
from rmqfast.logs import QuietLock
from rmqfast.store.metadata.transaction import in_transaction
from rmqfast.system import lock_file

_T = TypeVar("_T")

#: Offsets of a group's queues by topic, as a broker told them.
Offsets = Mapping[str, Mapping[int, int]]
#: Rows that one transaction removes at most, so that readers wait for a moment only.
_PIECE = 10_000
#: Rows that are removed before texts that no row has are looked for.
_REMOVED_BEFORE_TEXTS = 100_000
#: Texts of which the numbers are in memory.
_MOST_IDS = 10_000
_OLD = "SELECT id FROM facts WHERE last_ms < ? LIMIT ?"
_OLDEST = "SELECT id FROM facts WHERE last_ms IS NOT NULL ORDER BY last_ms LIMIT ?"
_REMOVE_TEXTS = """
DELETE FROM texts WHERE id NOT IN (
  SELECT broker FROM runs UNION SELECT grp FROM runs UNION SELECT topic FROM facts UNION SELECT facts FROM facts
)
"""


class GroupLook(NamedTuple):
    """A look at a group at one broker. Times are milliseconds since 1970 by the broker's clock.

    Attributes:
        before: Offsets that the broker told before it was asked for the members.
        facts: For each topic, the members and subscriptions as a text.
        first: Time from which on the facts are known to be so.
        last: Time until which the facts are known to be so.
        members: Number of members online.
    """

    broker_name: str
    group: str
    before: Offsets
    facts: Mapping[str, str]
    first: int
    last: int
    members: int


@dataclass
class _Open:
    """A row of facts that the last look still showed, and the offsets in its rows."""

    id: int
    text: str
    offsets: dict[int, int]

    def is_left(self, text: str | None, before: Mapping[int, int]) -> bool:
        """Whether a look shows other facts, or an offset that has gone back."""
        return text != self.text or any(before.get(queue, offset) < offset for queue, offset in self.offsets.items())


@dataclass
class _Run:
    """Looks at a group of a broker without a gap."""

    id: int
    last: int
    topics: dict[str, _Open] = field(default_factory=dict)


class ClusterHistory:
    """The history in a file, to which looks are added. Only one process writes a file. Thread-safe.

    Raises:
        StoreBusyError: Another watcher writes the file.
        UnsupportedStoreError: It is no history, or one of another version.
        CorruptError: It is damaged.
        StoreIOError: The system does not let it be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = QuietLock()
        self._runs: dict[tuple[str, str], _Run] = {}
        self._ids: dict[str, int] = {}
        self._removed = 0
        #: Whether a transaction failed, after which the rows of the file have to be ended before others begin.
        self._is_torn = False
        with ExitStack() as stack, errors_named(path):
            self._guard = stack.enter_context(_guard(path))
            self._db: sqlite3.Connection | None = stack.enter_context(closing(open_to_write(path)))
            _end_rows(self._db)
            stack.pop_all()

    def is_changed(self, look: GroupLook) -> bool:
        """Whether a look shows another state than the last one, so that the offsets behind it have to be known."""
        with self._lock:
            run = self._runs.get((look.broker_name, look.group))
            if run is None:
                return True
            return run.topics.keys() != look.facts.keys() or any(
                each.is_left(look.facts[topic], look.before.get(topic, {})) for topic, each in run.topics.items()
            )

    def add(self, looks: Iterable[tuple[GroupLook, Offsets]]) -> None:
        """Adds looks, each with the offsets that the broker told afterwards, in one transaction."""

        def work(db: sqlite3.Connection) -> None:
            for look, after in looks:
                self._add(db, look, after)

        self._transact(work)

    def note_gaps(self, places: Iterable[tuple[str, str]]) -> None:
        """Notes that nothing is known of groups at brokers until the next look."""

        def work(db: sqlite3.Connection) -> None:
            for run in [self._runs.pop(place) for place in places if place in self._runs]:
                for each in run.topics.values():
                    _end(db, each, run.last)

        self._transact(work)

    @property
    def watched(self) -> list[tuple[str, str]]:
        """The brokers and groups of the last looks."""
        with self._lock:
            return list(self._runs)

    def trim(self, *, most_rows: int, oldest_ms: int) -> bool:
        """Removes rows that are too old, and the oldest of too many; the present state stays.

        Returns whether there may be more of them, since one transaction takes only some.
        """

        def work(db: sqlite3.Connection) -> bool:
            excess = min(_PIECE, row_count(db) - most_rows)
            removed = _remove(db, _OLD, (oldest_ms, _PIECE))
            if excess > removed:
                removed += _remove(db, _OLDEST, (excess - removed,))
            db.execute("DELETE FROM runs WHERE last_ms < ? AND id NOT IN (SELECT run FROM facts)", (oldest_ms,))
            self._removed += removed
            if self._removed >= _REMOVED_BEFORE_TEXTS:
                db.execute(_REMOVE_TEXTS)
                self._ids.clear()
                self._removed = 0
            return removed >= _PIECE

        return self._transact(work)

    def close(self) -> None:
        """Closes the file, which is then one file without others beside it. May be called twice."""
        with self._lock:
            db, self._db = self._db, None
            if db is None:
                return
            with suppress(sqlite3.Error):  # somebody reads it: the file stays as it is, and is whole
                _end_rows(db)
                db.execute("PRAGMA journal_mode = DELETE")
            db.close()
            self._guard.close()

    def _add(self, db: sqlite3.Connection, look: GroupLook, after: Offsets) -> None:
        run = self._runs.get((look.broker_name, look.group))
        if run is None:
            names = self._id(db, look.broker_name), self._id(db, look.group)
            run = _Run(_insert(db, "runs (broker, grp, last_ms) VALUES (?, ?, ?)", (*names, look.last)), look.last)
            self._runs[look.broker_name, look.group] = run
        for topic in [*run.topics]:
            if topic not in look.facts:
                _end(db, run.topics.pop(topic), run.last)
        for topic, text in look.facts.items():
            before, open_ = look.before.get(topic, {}), run.topics.get(topic)
            if open_ is not None and not open_.is_left(text, before):
                _move(db, open_, before)
                continue
            if open_ is not None:
                _end(db, open_, run.last)
            run.topics[topic] = self._begin(db, run, topic, look, after.get(topic, {}))
        run.last = max(run.last, look.last)
        db.execute("UPDATE runs SET last_ms = ? WHERE id = ?", (run.last, run.id))

    def _begin(
        self, db: sqlite3.Connection, run: _Run, topic: str, look: GroupLook, offsets: Mapping[int, int]
    ) -> _Open:
        text = look.facts[topic]
        values = (run.id, self._id(db, topic), self._id(db, text), look.first)
        number = _insert(db, "facts (run, topic, facts, first_ms) VALUES (?, ?, ?, ?)", values)
        rows = [(number, queue, offset, offset) for queue, offset in offsets.items()]
        db.executemany("INSERT INTO offsets VALUES (?, ?, ?, ?)", rows)
        return _Open(number, text, dict(offsets))

    def _id(self, db: sqlite3.Connection, text: str) -> int:
        known = self._ids.get(text)
        if known is None:
            if len(self._ids) >= _MOST_IDS:
                self._ids.clear()
            db.execute("INSERT OR IGNORE INTO texts (text) VALUES (?)", (text,))
            known = int(db.execute("SELECT id FROM texts WHERE text = ?", (text,)).fetchone()[0])
            self._ids[text] = known
        return known

    def _transact(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        def whole(db: sqlite3.Connection) -> _T:
            if self._is_torn:
                _end_rows(db)
            return work(db)

        with self._lock, errors_named(self._path):
            if self._db is None:
                raise StoreError(f"{self._path}: the history is closed")
            try:
                result = in_transaction(self._db, whole)
            except BaseException:
                self._runs.clear()
                self._ids.clear()
                self._is_torn = True
                raise
            self._is_torn = False
            return result


def _guard(path: Path) -> IO[str]:
    """Keeps other watchers from a history, until the returned file is closed."""
    guard = path.with_name(f"{path.name}.lock").open("a")
    try:
        lock_file(guard)
    except BlockingIOError:
        guard.close()
        error = StoreBusyError(f"{path}: another watcher writes to it")
        error.add_note("end that watcher, or take another file")
        raise error from None
    return guard


def _end_rows(db: sqlite3.Connection) -> None:
    """Ends the rows that were still true at the last look of an earlier watcher."""
    db.execute("UPDATE facts SET last_ms = (SELECT last_ms FROM runs WHERE runs.id = run) WHERE last_ms IS NULL")


def _end(db: sqlite3.Connection, row: _Open, last: int) -> None:
    db.execute("UPDATE facts SET last_ms = ? WHERE id = ?", (last, row.id))


def _move(db: sqlite3.Connection, row: _Open, offsets: Mapping[int, int]) -> None:
    """Notes the offsets that have moved on."""
    moved = {queue: offset for queue, offset in offsets.items() if row.offsets.get(queue) != offset}
    # A group without an offset in a queue may get one.
    query = "INSERT INTO offsets VALUES (?1, ?2, NULL, ?3) ON CONFLICT (facts, queue) DO UPDATE SET stop = ?3"
    db.executemany(query, [(row.id, queue, offset) for queue, offset in moved.items()])
    row.offsets |= moved


def _remove(db: sqlite3.Connection, query: str, values: tuple[int, ...]) -> int:
    """Removes the rows of facts that a query finds, with their offsets. Returns the number of rows."""
    rows = db.execute(query, values).fetchall()
    offsets = db.executemany("DELETE FROM offsets WHERE facts = ?", rows).rowcount
    db.executemany("DELETE FROM facts WHERE id = ?", rows)
    return len(rows) + max(0, offsets)


def _insert(db: sqlite3.Connection, what: str, values: tuple[int, ...]) -> int:
    return int(db.execute(f"INSERT INTO {what}", values).lastrowid or 0)
