"""Messages as rows of Python's own values: timestamps in milliseconds, properties as dict, bodies as bytes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from rmqfast.cli.output import Row
from rmqfast.errors import DamageWarning
from rmqfast.store import Scan

__all__ = ["scan_rows"]


def scan_rows(found: Scan, limit: int | None) -> Iterator[Sequence[Row]]:
    """Yields the rows of a scan, a batch at a time.

    Args:
        found: The scan; what damage it meets is left to the caller.
        limit: Rows at most.
    """
    left = limit
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        for batch in found.batches() if left != 0 else ():
            taken = batch if left is None else batch.slice(0, left)
            yield list(zip(*map(_values, taken.columns), strict=True))
            if left is not None and (left := left - taken.num_rows) == 0:
                return


def _values(column: Any) -> list[object]:
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    if pa.types.is_map(column.type):
        return [None if pairs is None else dict(pairs) for pairs in column.to_pylist()]
    values: list[object] = column.to_pylist()
    return values
