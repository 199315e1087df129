"""Logs of real brokers, cut at each byte of their end, or with a flipped bit: nothing is lost and no harm silent."""

from __future__ import annotations

import os
import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from rmqfast.message import Damage
from tests.effort import effort
from tests.golden_stores import PathOf
from tests.reference.commit_log import CommitLog
from tests.reference.record import Record, is_protected
from tests.store.scanned import scanned

#: What a scan met is compared with `Scan.damage`.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::rmqfast.errors.DamageWarning")]

COLUMNS = ["topic", "queue_id", "queue_offset", "physical_offset", "tags", "store_size", "body_crc"]
FILE_SIZE = 1 << 20
THREADS = 64  # a torn end is looked at several times, with waits

# among them records of version 2; the large ones have several files, and bodies of 300 KiB
SMALL = ["delaytx-4.9.4", "delaytx-5.3.3", "offsets-4.9.4"]
LARGE = ["basic-4.9.4", "basic-5.4.0"]


@dataclass(frozen=True)
class Log:
    """The log of a store, to be harmed, and what it held before."""

    path: Path
    records: list[Record]

    @staticmethod
    def of(path: Path) -> Log:
        walk = CommitLog.read([path / "commitlog"]).walk()
        return Log(path, [found for found in walk if isinstance(found, Record)])

    def last_file(self, path: Path) -> Log:
        """The log as retention leaves it in the end: its last file alone."""
        file = self.file(self.end)
        (path / "commitlog").mkdir(parents=True)
        shutil.copy(file, path / "commitlog")
        return Log(path, [record for record in self.records if record.physical_offset >= int(file.name)])

    @property
    def end(self) -> int:
        return end_of(self.records[-1])

    def file(self, offset: int) -> Path:
        return self.path / "commitlog" / f"{offset // FILE_SIZE * FILE_SIZE:020d}"

    def scan(self) -> tuple[pa.Table, list[Damage]]:
        """Its rows, checked by CRC, and what could not be read."""
        scan = scanned(self.path, columns=COLUMNS, verify_crc=True)
        return pa.RecordBatchReader.from_stream(scan).read_all(), scan.damage


def end_of(record: Record) -> int:
    """Where the next record may begin."""
    return record.physical_offset + record.store_size


@pytest.mark.parametrize("filled", [False, True], ids=["short", "zeroes"])
@pytest.mark.parametrize("name", ["offsets-4.9.4", "delaytx-5.3.3", "basic-5.4.0"])
def test_a_log_cut_at_any_byte_of_its_last_two_records_has_all_records_before_the_cut(
    golden_store: PathOf, tmp_path: Path, name: str, filled: bool
) -> None:
    whole = Log.of(golden_store(name)).last_file(tmp_path / "whole")
    rows, damage = whole.scan()
    assert (rows.num_rows, damage) == (len(whole.records), [])
    stored = whole.file(whole.end).read_bytes()
    cuts = range(whole.end, whole.records[-2].physical_offset - 1, -1)

    def check(part: int) -> None:
        """Cuts one copy of the log shorter and shorter."""
        log = Log(tmp_path / str(part), whole.records)
        shutil.copytree(whole.path / "commitlog", log.path / "commitlog", copy_function=os.link)
        log.file(whole.end).unlink()
        log.file(whole.end).write_bytes(stored)
        for cut in cuts[part::THREADS]:
            os.truncate(log.file(cut), cut % FILE_SIZE)
            if filled:
                os.truncate(log.file(cut), FILE_SIZE)
            check_cut(log, cut, rows, stored, filled=filled)

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(check, range(THREADS)))


def check_cut(log: Log, cut: int, rows: pa.Table, stored: bytes, *, filled: bool) -> None:
    """The rows before the cut are there; what is left of the record that it parts is damage, up to its last byte."""
    # nothing protects the text of properties: zeroes are as good as any
    last = log.records[-3:]
    sound = [r for r in last if end_of(r) - len(r.property_bytes) * filled <= cut]
    left, damage = log.scan()
    assert left.num_rows == len(log.records) - len(last) + len(sound), f"cut at {cut}"
    kept = left.num_rows - sum(end_of(r) > cut for r in sound)
    assert left.slice(0, kept).equals(rows.slice(0, kept)), f"cut at {cut}"
    start = end_of(sound[-1])
    written = len(stored[start % FILE_SIZE : max(start, cut) % FILE_SIZE].rstrip(b"\0"))
    assert [(d.offset, d.length) for d in damage] == [(start, written)] * bool(written), f"cut at {cut}"


@pytest.mark.parametrize("name", SMALL + LARGE)
def test_a_flipped_bit_is_found_or_lies_where_nothing_can_find_it(golden_store_copy: PathOf, name: str) -> None:
    check_flips(Log.of(golden_store_copy(name)), 250, random.Random(name))


@pytest.mark.long
@pytest.mark.parametrize("name", SMALL + LARGE)
def test_each_of_thousands_of_flipped_bits_is_found_or_lies_where_nothing_can_find_it(
    golden_store_copy: PathOf, name: str
) -> None:
    """20,000 of each store with RMQFAST_FULL=1, or as RMQFAST_FLIPS says."""
    check_flips(Log.of(golden_store_copy(name)), effort("RMQFAST_FLIPS", 5_000, 20_000), random.Random(f"long {name}"))


def check_flips(log: Log, count: int, chosen: random.Random) -> None:
    """Flips a bit of some record and takes it back, again and again."""
    rows, damage = log.scan()
    assert (rows.num_rows, damage) == (len(log.records), [])
    for _ in range(count):
        n = chosen.randrange(len(log.records))
        at = chosen.randrange(log.records[n].store_size)
        bit = chosen.randrange(8)
        flip(log, log.records[n].physical_offset + at, bit)
        check_flip(log, rows, n, at, f"record {n}, byte {at}, bit {bit}")
        flip(log, log.records[n].physical_offset + at, bit)
    assert log.scan()[0].equals(rows)


def check_flip(log: Log, rows: pa.Table, n: int, at: int, where: str) -> None:
    """All other rows are as before; this one is damage, or its byte is one of those that nothing protects."""
    record = log.records[n]
    left, damage = log.scan()
    found = not damage
    assert left.num_rows == len(log.records) - (not found), where
    assert left.slice(0, n).equals(rows.slice(0, n)), where
    assert left.slice(n + found).equals(rows.slice(n + 1)), where
    if found:
        assert not is_protected(record, at), where
    else:
        assert [(d.offset, d.length) for d in damage] == [(record.physical_offset, record.store_size)], where


def flip(log: Log, offset: int, bit: int) -> None:
    """Turns one bit of the log over."""
    with log.file(offset).open("r+b", buffering=0) as file:
        byte = os.pread(file.fileno(), 1, offset % FILE_SIZE)[0]
        os.pwrite(file.fileno(), bytes([byte ^ 1 << bit]), offset % FILE_SIZE)
