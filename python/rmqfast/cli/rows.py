"""The rows of a scan, as many as are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rmqfast.cli.output import Row
from rmqfast.store import Scan
from rmqfast.store.json_lines import plain_rows

__all__ = ["scan_rows"]


def scan_rows(found: Scan, limit: int | None) -> Iterator[Sequence[Row]]:
    """Yields the rows of a scan, a batch at a time.

    Args:
        found: The scan; what damage it meets is left to the caller.
        limit: Rows at most.
    """
    left = limit
    for rows in plain_rows(found) if left != 0 else ():
        yield rows if left is None else rows[:left]
        if left is not None and (left := max(0, left - len(rows))) == 0:
            return
