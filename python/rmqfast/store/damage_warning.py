"""Warnings of damage, at the line of the caller."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import Any

from rmqfast.arguments import Number, integer
from rmqfast.errors import DamageWarning
from rmqfast.message import Damage, MessageExt

__all__ = ["CallerLine", "check_count", "describe", "messages_of"]

#: Packages that read on behalf of somebody: their lines are not where a person looks.
_READERS = frozenset({"rmqfast", "contextlib", "pyarrow", "pandas", "polars", "duckdb", "deltalake", "narwhals"})


class CallerLine:
    """The line of code that reads: the innermost one outside of this package and of table libraries.

    It is looked for when this is made, as a stream may be read on by threads that have no line. Where there is none,
    `otherwise` is taken.
    """

    def __init__(self, otherwise: CallerLine | None = None) -> None:
        frame: FrameType = sys._getframe(1)  # noqa: SLF001 - the one way to see who calls
        while _is_reader(frame) and frame.f_back is not None:
            frame = frame.f_back
        # a line is known by its file, its number and the variables of its module
        self.place: tuple[str, int, dict[str, Any]] = frame.f_code.co_filename, frame.f_lineno, frame.f_globals
        if otherwise is not None and _is_reader(frame):
            self.place = otherwise.place

    def warn(self, text: str, category: type[Warning] = DamageWarning) -> None:
        file, line, variables = self.place
        registry = variables.setdefault("__warningregistry__", {})
        module = variables.get("__name__") or "<string>"
        warnings.warn_explicit(text, category, file, line, module=module, registry=registry)


def describe(entries: Sequence[tuple[int, int, str, str]], more: int = 0, *, when: str = "") -> str:
    """Returns the number of damaged places, and the first of them, as a text."""
    first, count = Damage(*entries[0]), len(entries) + more
    return f"{count} damaged places{when}, the first in {first.file} at offset {first.offset}: {first.reason}"


def _is_reader(frame: FrameType) -> bool:
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0] in _READERS


def messages_of(lookup: tuple[list[dict[str, Any]], list[tuple[int, int, str, str]]]) -> list[MessageExt]:
    rows, damage = lookup
    if damage:
        CallerLine().warn(f"{describe(damage)}; MessageStore.verify lists all")
    return [MessageExt(**row) for row in rows]


def check_count(max_messages: Number) -> int:
    """Checks the most messages of a look-up."""
    return integer("max_messages", max_messages, 1, 1 << 20)
