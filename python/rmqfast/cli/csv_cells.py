"""Formats values for CSV files. The values may be hostile."""

from __future__ import annotations

from collections.abc import Mapping

from rmqfast.cells import escape
from rmqfast.store.json_lines import base64_text, json_text

# A spreadsheet takes a cell with such a beginning for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_cell(value: object) -> object:
    """Returns a value for CSV. An apostrophe protects text that a spreadsheet would run; null becomes empty."""
    if isinstance(value, bytes | Mapping):
        value = base64_text(value) if isinstance(value, bytes) else json_text(value)
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return value


def screen_cell(value: object) -> object:
    """Returns a value for a terminal: `csv_cell`, with control and format characters escaped."""
    cell = csv_cell(value)
    return escape(cell) if isinstance(cell, str) else cell
