"""Formats values for terminals and notebooks. The values may be hostile."""

from __future__ import annotations

import codecs
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

__all__ = ["duration_text", "escape", "one_line", "size_text", "table_cell", "time_text"]

PREVIEW_BYTES = 160
_MINUTE = 60
#: Seconds of a unit, its name, and those of the next smaller one.
_UNITS = ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def table_cell(column: str, value: object, *, whole: bool = False) -> str:
    """Returns a value as one line without control characters. Bodies are shortened unless `whole` is set."""
    if value is None or value in ([], ()):
        return "-"
    if isinstance(value, bytes):
        return _text_of(value, None if whole else PREVIEW_BYTES)
    if isinstance(value, Mapping):
        return one_line(" ".join(f"{k}={v}" for k, v in value.items()))
    if isinstance(value, list | tuple):
        return one_line("; ".join(map(str, value)))
    if isinstance(value, int | float):
        return _number_text(column, value)
    return one_line(str(value))


def one_line(text: str) -> str:
    """Returns a string without control, format and surrogate characters. White space becomes a blank."""
    # the usual case, checked in C
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " if c in "\n\r\t" else c for c in text if c in "\n\r\t" or _is_visible(c))


def escape(text: str) -> str:
    r"""Returns a string in which control characters are escaped as in Python literals."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if _is_visible(c) else c.encode("unicode_escape").decode() for c in text)


def time_text(milliseconds: int) -> str:
    """Formats milliseconds since 1970 in UTC. A number outside the range of dates is returned as a number."""
    try:
        when = EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return str(milliseconds)
    return f"{when:%Y-%m-%d %H:%M:%S}.{milliseconds % 1000:03d}Z"


def duration_text(milliseconds: float) -> str:
    """Formats a duration by its two largest units.

    Example:
        >>> duration_text(12_000_000), duration_text(2_500), duration_text(200_000_000)
        ('3 h 20 min', '2.5 s', '2 d 7 h')
    """
    seconds = milliseconds / 1000
    if seconds < _MINUTE:
        return f"{seconds:.3g} s"
    size, unit, part, smaller = next(each for each in _UNITS if seconds >= each[0])
    rest = int(seconds % size // part)
    return f"{int(seconds // size)} {unit}" + (f" {rest} {smaller}" if rest else "")


def size_text(size: float) -> str:
    """Formats a number of bytes with a suitable unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def _number_text(column: str, value: float) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and column.endswith("_timestamp"):
        return time_text(value)
    return f"{value:.1f}" if column.endswith("_tps") else str(value)


def _is_visible(character: str) -> bool:
    return unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}


def _text_of(body: bytes, most: int | None) -> str:
    try:
        # incremental: the truncation may have split a character, which is no error
        return one_line(codecs.getincrementaldecoder("utf-8")().decode(body[:most]))
    except UnicodeDecodeError:
        # in hexadecimal, a byte takes two characters
        head = body if most is None else body[: most // 5]
        return f"0x{head.hex()} ({size_text(len(body))})"
