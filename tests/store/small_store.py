"""A small store to be damaged: one topic, several commit-log files, known rows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.reference.record import Record
from tests.reference.row import Row, row_of
from tests.reference.writer import Message, Options, write_store

FILE_SIZE = 4096
COUNT = 60


@dataclass
class SmallStore:
    path: Path
    records: list[Record]

    @property
    def segments(self) -> list[Path]:
        return sorted((self.path / "commitlog").iterdir())

    @property
    def queue_file(self) -> Path:
        return self.path / "consumequeue/T/0/00000000000000000000"

    @cached_property
    def rows(self) -> list[Row]:
        return [row_of(record) for record in self.records]

    def rows_but(self, lost: Callable[[Record], bool]) -> list[Row]:
        return [row_of(record) for record in self.records if not lost(record)]

    def patch(self, physical_offset: int, data: bytes) -> None:
        """Writes `data` over what stands at `physical_offset`."""
        with (self.path / "commitlog" / f"{physical_offset // FILE_SIZE * FILE_SIZE:020d}").open("r+b") as file:
            file.seek(physical_offset % FILE_SIZE)
            file.write(data)

    def patch_unit(self, queue_offset: int, data: bytes) -> None:
        with self.queue_file.open("r+b") as file:
            file.seek(queue_offset * 20)
            file.write(data)


def copy_open_store(source: Path, target: Path) -> None:
    """Copies a store that is open, but for the files that it makes ahead, which get other names meanwhile."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.next", "*.tmp"))


def small_store(path: Path, messages: list[Message] | None = None) -> SmallStore:
    """Messages of topic T in queue 0, each with a tag, over several files."""
    made = messages or [
        Message("T", os.urandom(n * 7 % 300), properties=(("TAGS", f"t{n % 3}"),)) for n in range(COUNT)
    ]
    store = write_store(path, made, Options(commitlog_file_size=FILE_SIZE, consume_queue_file_size=2000))
    return SmallStore(store.path, store.records)
