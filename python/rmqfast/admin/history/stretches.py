"""Reads of a history what it has of one queue of a group."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rmqfast.admin.history.history_file import open_to_read
from rmqfast.admin.history.stretch import Stretch, facts_of_text
from rmqfast.errors import CorruptError, ResponseError
from rmqfast.message import MessageQueue

#: Newest rows that count; a history that has more of a queue begins later.
_MOST = 10_000
_ROWS = """
SELECT runs.id, texts.text, facts.first_ms, coalesce(facts.last_ms, runs.last_ms), start, stop
FROM runs JOIN facts ON facts.run = runs.id JOIN texts ON texts.id = facts.facts
LEFT JOIN offsets ON offsets.facts = facts.id AND queue = ?4
WHERE grp = (SELECT id FROM texts WHERE text = ?1) AND broker = (SELECT id FROM texts WHERE text = ?2)
AND topic = (SELECT id FROM texts WHERE text = ?3)
ORDER BY facts.id DESC LIMIT ?5
"""


def stretches_of(path: Path, group: str, queue: MessageQueue) -> list[Stretch]:
    """Returns what a history has of a queue of a group, oldest first.

    Raises:
        StoreNotFoundError: There is no such file.
        UnsupportedStoreError: It is no history, or one of another version.
        CorruptError: It is damaged.
        StoreIOError: The system does not let it be read.
    """
    with open_to_read(path) as db:
        rows = db.execute(_ROWS, (group, queue.broker_name, queue.topic, queue.queue_id, _MOST)).fetchall()
    try:
        return [_stretch(row, group, queue) for row in reversed(rows)]
    except (ResponseError, ValueError, TypeError) as error:
        raise CorruptError(f"{path}: expected rows of group {group}, got what is none: {error}") from error


def _stretch(row: Sequence[object], group: str, queue: MessageQueue) -> Stretch:
    run, text, first, last, start, stop = row
    facts, consume_from_where = facts_of_text(str(text), group, queue)
    return Stretch(
        queue=queue,
        run=_number(run),
        group=facts,
        consume_from_where=consume_from_where,
        first=_number(first),
        last=_number(last),
        start=None if start is None else _number(start),
        stop=None if stop is None else _number(stop),
    )


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"expected a number, got {value!r:.100}")
    return value
