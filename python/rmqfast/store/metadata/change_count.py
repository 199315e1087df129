"""Counts the changes of a metadata database in a second file, which reveals an older copy of the database.

SQLite opens a database without complaint after its write-ahead log was removed or cut between two changes, and cannot
tell a database from an older copy. The count is written after each change without a flush, so it never exceeds what the
disk has.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_DIGITS = 20


class ChangeCount:
    """The file `metadata.db-count`. It has a decimal number of fixed width, which is overwritten in place.

    Attributes:
        database: The database whose changes are counted.
        path: The file.
    """

    def __init__(self, database: Path) -> None:
        self.database: Final = database
        self.path: Final = database.with_name(f"{database.name}-count")

    def read(self) -> int | None:
        """Returns the number of changes. None if the file is missing or invalid."""
        try:
            text = self.path.read_bytes()[: _DIGITS + 1]
        except FileNotFoundError:
            return None
        # another length is a torn write
        return int(text) if len(text) == _DIGITS and text.isdigit() else None

    def write(self, count: int) -> None:
        # a count that is too low only weakens the check
        with suppress(OSError):
            # neither truncated nor created: the number is overwritten in place
            file = os.open(self.path, os.O_WRONLY)
            try:
                os.write(file, b"%0*d" % (_DIGITS, count))
            finally:
                os.close(file)
