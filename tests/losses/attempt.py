"""One attempt: something is harmed by one seed, read by public faces, and judged."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

__all__ = ["Attempt", "SilentLoss", "Subject", "judge"]


#: Characters of a row in an error: bodies may be long.
_LONGEST = 500
_Key = TypeVar("_Key", bound=Hashable)
_Row = TypeVar("_Row")


class SilentLoss(AssertionError):
    """A reader returned a row that was never written, returned one twice, or kept silent on one that is missing."""


@dataclass(frozen=True)
class Attempt:
    """The result of one seed.

    Args:
        harm: The mutation in words, for people: "flipped bit 3 of commitlog/00000000000000000000 at 1,234".
        rows: How many rows were returned, by all readers.
        missing: How many were missing, and told.
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

    def close(self) -> None:
        """Ends what it started."""


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
        told: Whether the reader said that the row of this key may be missing.

    Raises:
        SilentLoss: The rows differ from what was written, and nobody is told.
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
    """A row as errors have it: of one that has columns, those that differ from another one's."""
    if isinstance(row, Mapping) and isinstance(other, Mapping):
        row = {name: value for name, value in row.items() if value != other.get(name)}
    text = repr(row)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
