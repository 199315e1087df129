"""Rows as PySpark 4.0 hands them to the writer of a stream, as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Row

__all__ = ["row_batches"]

_ROWS = 4096


def row_batches(rows: Iterable[Row], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Batches of the columns of rows, of the types that a sink takes.

    Example:
        >>> from pyspark.sql import Row
        >>> (batch,) = row_batches([Row(body=bytearray(b"a"), properties={"n": "1"})], ["body", "properties"])
        >>> batch.to_pylist()
        [{'body': b'a', 'properties': [('n', '1')]}]
    """
    import pyarrow as pa

    left = iter(rows)
    while taken := list(islice(left, _ROWS)):
        arrays = [_array(name, [row[name] for row in taken]) for name in columns]
        yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _array(name: str, values: list[Any]) -> pa.Array:
    import pyarrow as pa

    if name == "body":  # texts are stored as what they are in UTF-8
        return pa.array([value.encode() if isinstance(value, str) else value for value in values], pa.binary())
    if name == "properties":
        # pyarrow takes pairs for a map, and a dictionary for a struct
        pairs = (None if value is None else list(value.items()) for value in values)
        return pa.array(pairs, pa.map_(pa.string(), pa.string()))
    if name == "keys" and any(isinstance(value, list) for value in values):
        return pa.array(values, pa.list_(pa.string()))
    # null in a whole batch has no type that Arrow could guess
    return pa.array(values, pa.int64() if name in {"queue_id", "delay_level", "flag"} else pa.string())
