"""Warns of damage. The warning names the line of the user's code that reads the store."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import Any

from rmqfast.arguments import Number, integer
from rmqfast.errors import DamageWarning
from rmqfast.message import Damage, MessageExt

#: Damage as the extension returns it: the fields of `Damage`.
DamageEntry = tuple[int, int, str, str, str | None]
#: Libraries that read on behalf of user code: a warning at one of their lines would not help the user.
_READERS = frozenset(
    {
        "rmqfast",
        "contextlib",
        "pyarrow",
        "pandas",
        "polars",
        "duckdb",
        "datafusion",
        "ibis",
        "narwhals",
        "deltalake",
    }
)


class CallerLine:
    """The line of the user's code that reads: the innermost frame that is not of this package or a table library.

    The frame is captured at construction, because a stream may be read by threads without user code. `otherwise` is
    used if there is no such frame.
    """

    def __init__(self, otherwise: CallerLine | None = None) -> None:
        frame: FrameType = sys._getframe(1)  # noqa: SLF001 - the only way to see the caller
        # walks outwards to the first frame of user code
        while _is_reader(frame) and frame.f_back is not None:
            frame = frame.f_back
        # what `warnings` needs to identify a line, also to show a repeated warning once
        self.place: tuple[str, int, dict[str, Any]] = frame.f_code.co_filename, frame.f_lineno, frame.f_globals
        if otherwise is not None and _is_reader(frame):
            self.place = otherwise.place

    def warn(self, text: str, category: type[Warning] = DamageWarning) -> None:
        file, line, variables = self.place
        # the registry of the caller's module, so that each line warns once
        registry = variables.setdefault("__warningregistry__", {})
        module = variables.get("__name__") or "<string>"
        warnings.warn_explicit(text, category, file, line, module=module, registry=registry)


def describe(entries: Sequence[DamageEntry], more: int = 0, *, when: str = "") -> str:
    """Returns the number of damaged places, and a description of the first place."""
    first, count = Damage(*entries[0]), len(entries) + more
    at = "" if first.broker_name is None else f" of broker {first.broker_name}"
    return f"{count} damaged places{when}, the first{at} in {first.file} at offset {first.offset}: {first.reason}"


def _is_reader(frame: FrameType) -> bool:
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0] in _READERS


def messages_of(lookup: tuple[list[dict[str, Any]], list[DamageEntry]]) -> list[MessageExt]:
    rows, damage = lookup
    if damage:
        CallerLine().warn(f"{describe(damage)}; MessageStore.verify lists all")
    return [MessageExt(**row) for row in rows]


def check_count(max_messages: Number) -> int:
    """Returns `max_messages` of a query as an integer. Raises an error if it is below 1."""
    return integer("max_messages", max_messages, 1, 1 << 20)
