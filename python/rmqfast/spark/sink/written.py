"""What was sent: counts of rows, bytes and requests."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Written", "total"]


@dataclass(slots=True)
class Written:
    """Counts of a task, or of all tasks.

    Attributes:
        rows: Rows that brokers have stored.
        bytes: Bytes of the bodies of the requests, in which messages stand with their properties.
        batches: Requests.
        retries: Requests that were sent once more, as no broker took them: some of their rows may be stored twice.
        less_safe: Requests that are stored, but not as safely as the broker is told to: the disk or a slave was late.

    Example:
        >>> str(Written(rows=3, bytes=300, batches=1))
        '3 rows, 300 bytes in 1 requests'
    """

    rows: int = 0
    bytes: int = 0
    batches: int = 0
    retries: int = 0
    less_safe: int = 0
    # lanes count at the same time
    _lock: Any = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, rows: int, size: int, *, is_safe: bool = True) -> None:
        """Counts a request that is stored."""
        with self._lock:
            self.rows += rows
            self.bytes += size
            self.batches += 1
            self.less_safe += not is_safe

    def tried_again(self) -> None:
        """Counts a request that is sent once more."""
        with self._lock:
            self.retries += 1

    def counts(self) -> tuple[int, int, int, int, int]:
        """All of them, in order."""
        return self.rows, self.bytes, self.batches, self.retries, self.less_safe

    def __str__(self) -> str:
        more = f", {self.retries} tried again" if self.retries else ""
        more += f", {self.less_safe} stored less safely than asked for" if self.less_safe else ""
        return f"{self.rows} rows, {self.bytes} bytes in {self.batches} requests{more}"

    def __reduce__(self) -> tuple[Any, ...]:
        # a lock cannot be pickled, and a task sends this to the driver
        return Written, self.counts()


def total(parts: Iterable[Written]) -> Written:
    """The sum of the counts.

    Example:
        >>> total([Written(1, 10, 1), Written(2, 20, 1)]).rows
        3
    """
    columns = zip(*(part.counts() for part in parts), strict=True)
    return Written(*map(sum, columns))
