"""The messages that a command shows: which columns, and how many rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rmqfast.cli.output import Form, Row
from rmqfast.store import COLUMNS, Scan
from rmqfast.store.json_lines import plain_rows

__all__ = ["TABLE_COLUMNS", "chosen_columns", "scan_rows"]

TABLE_COLUMNS = ("topic", "queue_id", "queue_offset", "store_timestamp", "tags", "keys", "body")


def chosen_columns(columns: str | None, form: Form) -> Sequence[str]:
    """The columns to read: those that were asked for, else what fits a table or all."""
    if columns is not None:
        return [name.strip() for name in columns.split(",")]
    return TABLE_COLUMNS if form is Form.TABLE else COLUMNS


def scan_rows(scan: Scan, limit: int | None) -> Iterator[Sequence[Row]]:
    """Yields the rows of a scan, a batch at a time."""
    remaining = limit
    for rows in plain_rows(scan) if remaining != 0 else ():
        yield rows if remaining is None else rows[:remaining]
        if remaining is not None and (remaining := max(0, remaining - len(rows))) == 0:
            return
