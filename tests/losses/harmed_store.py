"""A store before it was harmed, and after: each record unchanged, changed without protection, or broken."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from rmqfast import AppendOptions
from tests.reference import record as reference
from tests.reference.row import Row, row_of
from tests.store.scanned import opened, plain_rows

_UNIT_SIZE = 20
OPTIONS = AppendOptions(
    file_size=1 << 14, queue_file_size=600, index_slots=16, index_entries=100, zone_offset_ms=0, multi_dispatch=True
)
#: When the first message is stored.
BEGIN: Final = 1_700_000_000_000


@dataclass(frozen=True)
class TrueStore:
    """A store, and what it holds."""

    name: str
    path: Path
    options: AppendOptions

    @cached_property
    def rows(self) -> dict[int, Row]:
        """The messages by physical offset, in the order of the log."""
        scan = opened(self.path).scan(verify_crc=True)
        rows = {row["physical_offset"]: row for row in plain_rows(scan.to_arrow())}
        assert scan.damage == [] or self.name == "torn", self.name
        return rows

    @cached_property
    def listed(self) -> set[int]:
        """Those of them that have a place in a queue of their topic; not those of a topic that was removed since."""
        store = opened(self.path)
        scans = (store.scan(topic, way="queue", columns=["physical_offset"]) for topic in self.bounds)
        return {offset for scan in scans for offset in scan.to_arrow()["physical_offset"].to_pylist()}

    @cached_property
    def bounds(self) -> dict[str, dict[int, tuple[int, int]]]:
        """The queues, and their least and greatest offsets."""
        return opened(self.path).topics()

    @cached_property
    def log(self) -> dict[int, bytes]:
        """The files of the log by their offsets."""
        return {int(file.name): file.read_bytes() for file in sorted((self.path / "commitlog").iterdir())}

    def copy(self, path: Path) -> None:
        """Copies the store, the holes of its files as holes."""
        for directory, _, names in os.walk(self.path):
            target = path / Path(directory).relative_to(self.path)
            target.mkdir(parents=True)
            for name in names:
                _copy_sparse(Path(directory, name), target / name)


def _copy_sparse(source: Path, target: Path) -> None:
    content = source.read_bytes()
    with target.open("wb") as file:
        file.write(content.rstrip(b"\0"))
        file.truncate(len(content))


class HarmedStore:
    """A copy of a store that was harmed.

    Args:
        true: What it was.
        path: Where the copy is.
    """

    def __init__(self, true: TrueStore, path: Path) -> None:
        self.true = true
        self.path = path

        checkpoint = path / "checkpoint"
        page = _content(checkpoint)
        #: Whether `abort` says that the store was not closed.
        self.was_open = (path / "abort").exists()
        #: Whether the checkpoint says up to which offset the log was flushed.
        self.has_flushed_end = _says_flushed_end(page)
        files = [file for file in (path / "commitlog").glob("*") if file.name.isdigit()]
        contents = [(int(file.name), _content(file).rstrip(b"\0")) for file in files]
        #: Behind the last byte of the log that is not zero.
        self.written_to = max((base + len(content) for base, content in contents if content), default=0)

    @cached_property
    def changed(self) -> dict[int, Row | None]:
        """The changed records: by physical offset, the row that a reader may give.

        None where the harm shows: then the row must be missing, and told. No reader can tell a row whose other bytes
        were changed: `docs/damage.md`, "Bytes that nothing protects".
        """
        return {offset: _changed_row(*places, offset) for offset, places in self._places.items()}

    @cached_property
    def changed_unchecked(self) -> dict[int, Row | None]:
        """The same for a reader that does not compare a body with its CRC."""
        return {offset: _changed_row(*places, offset, checks=False) for offset, places in self._places.items()}

    @cached_property
    def whole(self) -> dict[int, Row]:
        """The records that are as they were."""
        return {offset: row for offset, row in self.true.rows.items() if offset not in self._places}

    def expected(
        self, wanted: Callable[[Row], bool], *, checks: bool = True, of_all: bool = False
    ) -> tuple[dict[int, Row], set[int]]:
        """The rows that a reading may give, and those of them that it may leave out without a word.

        These are rows that were changed so that nobody can tell, and are not wanted any more, or were not before; and
        where it is not `of_all` topics, those of a topic that was removed since.
        """
        changed = self.changed if checks else self.changed_unchecked
        rows: dict[int, Row] = {}
        optional: set[int] = set()
        for offset, before in self.true.rows.items():
            now = changed.get(offset, before)
            was_wanted, is_wanted = wanted(before), now is not None and wanted(now)
            if was_wanted or is_wanted:
                rows[offset] = before if now is None else now
            is_changed = was_wanted != is_wanted and now is not None
            is_forgotten = not of_all and offset not in self.true.listed
            if is_changed or is_forgotten or offset < self.begin or offset > self._flushed_to:
                optional.add(offset)
        return rows, optional

    @cached_property
    def begin(self) -> int:
        """The start of the log; missing oldest files look like retention."""
        names = (path.name for path in (self.path / "commitlog").glob("*"))
        return min((int(name) for name in names if name.isdigit()), default=0)

    @cached_property
    def _flushed_to(self) -> int:
        """Behind the last record: of a store that crashed, nothing but its checkpoint tells whether the log went on."""
        has_files = any((self.path / "commitlog").glob("*"))
        return max(self.whole, default=-1) if self.was_open and has_files and not self.has_flushed_end else 1 << 63

    @cached_property
    def is_index_harmed(self) -> bool:
        """Whether the index is not as it was: it has no checksum, and a look-up by key goes where it leads."""
        files = list((self.true.path / "index").iterdir())
        return any(_content(self.path / "index" / file.name) != file.read_bytes() for file in files)

    def knows(self, topic: str, queue_id: int, offset: int) -> bool:
        """Whether anything is left that says that an offset of a queue was given: a record, a unit, or `queue.ends`."""
        ends = self.true.path / "queue.ends"
        if ends.exists() and _content(self.path / ends.name) == ends.read_bytes():
            return True
        rows = (row for row in self.whole.values() if (row["topic"], row["queue_id"]) == (topic, queue_id))
        if any(row["queue_offset"] >= offset for row in rows):
            return True
        for file in sorted((self.true.path / "consumequeue" / topic / str(queue_id)).iterdir()):
            before, now = file.read_bytes(), _content(self.path / file.relative_to(self.true.path))
            first = max(0, offset * _UNIT_SIZE - int(file.name))
            units = range(first, len(before.rstrip(b"\0")), _UNIT_SIZE)
            if any(before[at : at + _UNIT_SIZE] == now[at : at + _UNIT_SIZE] for at in units):
                return True
        return False

    @cached_property
    def _places(self) -> dict[int, tuple[bytes, bytes]]:
        """The bytes of the records that are not as they were, before and now."""
        places: dict[int, tuple[bytes, bytes]] = {}
        for base, before in self.true.log.items():
            now = _content(self.path / "commitlog" / f"{base:020}")
            if now == before:
                continue
            for offset, row in self.true.rows.items():
                place = slice(offset - base, offset - base + row["store_size"])
                if base <= offset < base + len(before) and now[place] != before[place]:
                    places[offset] = before[place], now[place]
        return places


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _says_flushed_end(page: bytes) -> bool:
    """The rule of `rust/store/src/format/checkpoint.rs`."""
    if len(page) < 4092 or page[4064:4068] != b"REND":
        return False
    return page[4076:4084] == page[:8] and page[4088:4092] == zlib.crc32(page[4064:4088]).to_bytes(4, "big")


def _changed_row(before: bytes, now: bytes, offset: int, *, checks: bool = True) -> Row | None:
    record = reference.decode(before)
    assert isinstance(record, reference.Record)
    if len(now) < len(before):
        return None
    differing = [at for at in range(len(before)) if before[at] != now[at]]
    if any(reference.is_protected(record, at) and (checks or not reference.is_checked(record, at)) for at in differing):
        return None
    try:
        decoded = reference.decode(now, physical_offset=offset, verify_crc=checks)
    except (reference.Malformed, ValueError):
        return None
    assert isinstance(decoded, reference.Record)
    try:
        return row_of(decoded)
    except Exception:  # noqa: BLE001 - each library of compression has its own
        # the row has no body, and the reading says so
        return row_of(replace(decoded, body=b"", sys_flag=0)) | {"body": None, "sys_flag": decoded.sys_flag}
