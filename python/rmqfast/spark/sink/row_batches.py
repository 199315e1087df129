"""Converts the rows that PySpark 4.0 gives to a stream's writer to Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Row

_ROWS = 4096


def row_batches(rows: Iterable[Row], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yields the columns of rows as batches, with the types that a sink accepts."""
    import pyarrow as pa

    left = iter(rows)
    while taken := list(islice(left, _ROWS)):
        arrays = [_array(name, [row[name] for row in taken]) for name in columns]
        yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _array(name: str, values: list[Any]) -> pa.Array:
    import pyarrow as pa

    if name == "body":  # strings are stored as UTF-8
        return pa.array([value.encode() if isinstance(value, str) else value for value in values], pa.binary())
    if name == "properties":
        # pyarrow takes pairs for a map; a dictionary would be a struct.
        pairs = (None if value is None else list(value.items()) for value in values)
        return pa.array(pairs, pa.map_(pa.string(), pa.string()))
    if name == "keys" and any(isinstance(value, list) for value in values):
        return pa.array(values, pa.list_(pa.string()))
    # Explicit, since Arrow cannot guess the type of a batch that is all null.
    return pa.array(values, pa.int64() if name in {"queue_id", "delay_level", "flag"} else pa.string())
