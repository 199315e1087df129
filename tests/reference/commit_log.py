"""The commit log: files of one size, in one directory or in several, read as one sequence of records.

A file ends in a blank record. The log ends at the first place that holds no sound record: zeroes where nothing was
written yet, a record that was written in part, or a blank record that no further file follows.
Source: CommitLog.recoverNormally, MultiPathMappedFileQueue.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import record
from .record import Blank, Malformed, Record


@dataclass(frozen=True)
class CommitLog:
    """`files` maps the physical offset of the first byte to the file's bytes."""

    file_size: int
    files: dict[int, bytes]

    @staticmethod
    def read(directories: Sequence[Path]) -> CommitLog:
        paths = [path for directory in directories for path in directory.iterdir() if path.name.isdigit()]
        files = {int(path.name): path.read_bytes() for path in sorted(paths, key=lambda path: path.name)}
        files = {start: data for start, data in files.items() if data}
        return CommitLog(len(next(iter(files.values()), b"")), files)

    @property
    def min_offset(self) -> int:
        return min(self.files, default=0)

    def walk(self, verify_crc: bool = True) -> Walk:
        return Walk(self, verify_crc)

    def at(self, physical_offset: int, verify_crc: bool = True) -> Record | Blank:
        """What stands at `physical_offset`; raises `Malformed` where that is no sound record."""
        start = physical_offset // self.file_size * self.file_size if self.file_size else 0
        if start not in self.files:
            raise Malformed(f"no file holds physical offset {physical_offset}")
        return record.decode(self.files[start], physical_offset - start, physical_offset, verify_crc)

    def message_at(self, physical_offset: int) -> Record | None:
        """The message that starts there, or None."""
        try:
            found = self.at(physical_offset)
        except Malformed:
            return None
        return found if isinstance(found, Record) else None


class Walk:
    """Iterates over the log once; afterwards `end_offset` says where it ended and `end_reason` why.

    `end_reason` is empty at a natural end (zeroes, or no further file) and says what is wrong at damage.
    """

    def __init__(self, log: CommitLog, verify_crc: bool) -> None:
        self.log, self.verify_crc = log, verify_crc
        self.end_offset, self.end_reason = log.min_offset, ""

    def __iter__(self) -> Iterator[Record | Blank]:
        while self.end_offset // max(1, self.log.file_size) * self.log.file_size in self.log.files:
            try:
                found = self.log.at(self.end_offset, self.verify_crc)
            except Malformed as error:
                self.end_reason = "" if self._is_unwritten() else str(error)
                return
            if isinstance(found, Record):
                self.end_offset += found.store_size
                yield found
            elif not self._enter_next_file(found):
                return
            else:
                yield found

    def _enter_next_file(self, blank: Blank) -> bool:
        next_start = (blank.physical_offset // self.log.file_size + 1) * self.log.file_size
        if next_start not in self.log.files:
            return False
        self.end_offset = next_start
        return True

    def _is_unwritten(self) -> bool:
        start = self.end_offset // self.log.file_size * self.log.file_size
        head = self.log.files[start][self.end_offset - start :][:8]
        return head == bytes(8)
