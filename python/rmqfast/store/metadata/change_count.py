"""Counts the changes of a metadata database in a file beside it: a database that is older than that has lost some.

SQLite takes a write-ahead log that was removed or cut off between two changes for one that never had more, and nothing
tells a database from its older copy. The file is written behind each change and not waited for: it never says more than
the disk has.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["ChangeCount"]

_DIGITS = 20


class ChangeCount:
    """The file `metadata.db-count`: a number in as many digits each time, so that it is overwritten in place.

    Attributes:
        database: Whose changes it counts.
        path: The file.
    """

    def __init__(self, database: Path) -> None:
        self.database: Final = database
        self.path: Final = database.with_name(f"{database.name}-count")

    def read(self) -> int | None:
        """Returns the number of changes; None if the file is missing or holds no number."""
        try:
            text = self.path.read_bytes()[: _DIGITS + 1]
        except FileNotFoundError:
            return None
        return int(text) if len(text) == _DIGITS and text.isdigit() else None

    def write(self, count: int) -> None:
        with suppress(OSError):
            file = os.open(self.path, os.O_WRONLY)
            try:
                os.write(file, b"%0*d" % (_DIGITS, count))
            finally:
                os.close(file)
