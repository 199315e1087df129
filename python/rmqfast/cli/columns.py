"""The columns that a command shows."""

from __future__ import annotations

from collections.abc import Sequence

from rmqfast.cli.output import Form
from rmqfast.store import COLUMNS

__all__ = ["TABLE_COLUMNS", "chosen_columns"]

TABLE_COLUMNS = ("topic", "queue_id", "queue_offset", "store_timestamp", "tags", "keys", "body")


def chosen_columns(asked: str | None, form: Form) -> Sequence[str]:
    """The columns to read: those that were asked for, else what fits a table or all."""
    if asked is not None:
        return [name.strip() for name in asked.split(",")]
    return TABLE_COLUMNS if form is Form.TABLE else COLUMNS
