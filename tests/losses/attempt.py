"""One attempt: something is harmed by one seed, read by public faces, and judged."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

#: Characters of a row in an error: bodies may be long.
_LONGEST = 500
_Key = TypeVar("_Key", bound=Hashable)
_Row = TypeVar("_Row")
Row = dict[str, Any]
#: Topic, queue, offset.
Key = tuple[str, int, int]


class SilentLoss(AssertionError):
    """A reader returned a row that was never written, returned one twice, or did not report one that is missing."""


@dataclass(frozen=True)
class Attempt:
    """The result of one seed.

    Args:
        harm: The damage in words, for people: "commitlog/00000000000000000000: bit 3 flipped at 1,234".
        rows: How many rows were returned, by all readers.
        missing: How many were missing, and reported.
        refused: Whether a reader raised an error instead of an answer.
    """

    harm: str
    rows: int
    missing: int
    refused: bool


class Subject(Protocol):
    """Something that can be harmed, such as stores; made once, tried with many seeds."""

    def attempt(self, chance: random.Random, directory: Path) -> Attempt:
        """Harms one in an empty `directory`, by `chance` alone, and reads it; raises `SilentLoss`."""

    def close(self) -> None: ...


def judge(
    where: str,
    truth: Mapping[_Key, _Row],
    returned: Iterable[tuple[_Key, _Row]],
    told: Callable[[_Key], bool],
) -> tuple[int, int]:
    """Compares what a reader returned with what was written: how many rows are there, and how many missing.

    Args:
        where: The harm and the reader, for the error.
        truth: What was written, by what names a row: a physical offset, or a queue and its offset.
        returned: The rows of the reader.
        told: Whether the reader reported that the row of this key may be missing.
    """
    seen: set[_Key] = set()
    for key, row in returned:
        if key in seen:
            raise SilentLoss(f"{where}: the row {key} was returned twice")
        seen.add(key)
        if key not in truth:
            raise SilentLoss(f"{where}: the row {key} was never written: {_shown(row, None)}")
        if truth[key] != row:
            shown, expected = _shown(row, truth[key]), _shown(truth[key], row)
            raise SilentLoss(f"{where}: the row {key} is {shown}, expected {expected}")
    missing = [key for key in truth if key not in seen]
    silent = [key for key in missing if not told(key)]
    if silent:
        raise SilentLoss(f"{where}: {len(silent)} of {len(truth)} rows are missing and not told, the first {silent[0]}")
    return len(seen), len(missing)


def _shown(row: object, other: object) -> str:
    """A row for an error: of columns, those that differ from the other row's."""
    if isinstance(row, Mapping) and isinstance(other, Mapping):
        row = {name: value for name, value in row.items() if value != other.get(name)}
    text = repr(row)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


@contextmanager
def logged(level: int = logging.WARNING, names: Iterable[str] = ("rmqfast",)) -> Iterator[list[str]]:
    """Collects what these loggers say."""
    lines: list[str] = []
    handler = logging.Handler(level)
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    loggers = [logging.getLogger(name) for name in names]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield lines
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


def rows_of(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    """Rows whose times are milliseconds, as one that was altered may be none of this calendar."""
    return [row for batch in batches for row in _with_numbers(batch).to_pylist()]


def key_of(row: Row) -> Key:
    return row["topic"], row["queue_id"], row["queue_offset"]


def _with_numbers(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [
        pc.divide(column.view(pa.int64()), {"ms": 1, "us": 1000}[column.type.unit])
        if pa.types.is_timestamp(column.type)
        else column
        for column in batch.columns
    ]
    return pa.record_batch(columns, names=batch.schema.names)
