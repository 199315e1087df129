"""Rows as the oracle compares them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Key", "Row", "key_of", "rows_of"]

Row = dict[str, Any]
#: Topic, queue, offset.
Key = tuple[str, int, int]


def rows_of(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    """Rows whose times are milliseconds, as one that was altered may be none of this calendar."""
    return [row for batch in batches for row in _with_numbers(batch).to_pylist()]


def key_of(row: Row) -> Key:
    """The place of a row."""
    return row["topic"], row["queue_id"], row["queue_offset"]


def _with_numbers(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch([_as_number(column) for column in batch.columns], names=batch.schema.names)


def _as_number(column: pa.Array) -> pa.Array:
    if not pa.types.is_timestamp(column.type):
        return column
    in_a_millisecond = {"ms": 1, "us": 1000}[column.type.unit]
    return pc.divide(column.view(pa.int64()), in_a_millisecond)
