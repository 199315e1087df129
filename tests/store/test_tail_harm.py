"""Tails and scans of files that another process shortens, extends, replaces, removes: no signal, no wrong row."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from itertools import cycle
from pathlib import Path

import pytest

import rmqfast
from rmqfast import Tail
from rmqfast.errors import StoreError
from rmqfast.store import milliseconds
from rmqfast.store.scan_source import Way
from tests.reference.row import Row
from tests.store.scanned import TIMES, rows_and_damage
from tests.store.small_store import SmallStore, small_store

HARMS = int(os.environ.get("RMQFAST_HARMS", "400"))
LOOKS = 20
#: How often a tail of files that are harmed looks before it gives up.
POLLS = 50
#: Harms one file after the other, mends each, and ends after so many once it is told to.
HARM = """
import itertools, os, random, sys, time
from pathlib import Path
root, count, enough = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
whole = {p: p.read_bytes() for part in ("commitlog", "consumequeue") for p in (root / part).rglob("*") if p.is_file()}
paths = sorted(whole)
chance = random.Random(count)
for harms in itertools.count():
    if harms >= count and enough.exists():
        break
    path = chance.choice(paths)
    data = whole[path]
    spare = path.with_name("spare")
    match chance.randrange(5):
        case 0:
            os.truncate(path, chance.randrange(len(data)))
        case 1:
            os.truncate(path, chance.randrange(len(data)))
            os.truncate(path, len(data) + chance.randrange(len(data)))
        case 2:
            spare.write_bytes(data[: chance.randrange(len(data))][::-1])
            spare.replace(path)
        case 3:
            path.unlink()
        case 4:
            path.write_bytes(bytes(len(data)))
    time.sleep(chance.random() * 0.002)
    if chance.randrange(2):
        spare.write_bytes(data)
        spare.replace(path)
    else:
        path.write_bytes(data)
"""


def without_properties(row: Row) -> Row:
    """A row but for what no checksum covers: a file that was shortened and has grown again holds zeroes for a while."""
    return {**row, "properties": 0, "tags": 0, "keys": 0, "msg_id": 0}


def followed(store: SmallStore, end: int) -> tuple[list[Row], Tail]:
    """The rows of a tail that gives up after a while."""
    tail = rmqfast.open_store(store.path).tail(start=0, stop=end)
    rows: list[Row] = []
    for _ in range(POLLS):
        batch = tail.poll()
        rows += [] if batch is None else batch.to_pylist()
        if tail.position >= end:
            break
        time.sleep(0.001)  # noqa: TID251 - lets the other process harm meanwhile; how much is no matter
    plain = [{**row, "properties": dict(row["properties"])} for row in rows]
    return [{**row, **{name: milliseconds(row[name]) for name in TIMES}} for row in plain], tail


def check_followed(store: SmallStore, end: int) -> bool:
    """Whether a tail gave all rows; what it did not give it has told."""
    rows, tail = followed(store, end)
    by_offset = {row["physical_offset"]: row for row in store.rows}
    offsets = [row["physical_offset"] for row in rows]
    assert offsets == sorted(set(offsets))
    for row in rows:
        assert without_properties(row) == without_properties(by_offset[row["physical_offset"]])
    told = [range(place.offset, place.offset + place.length) for place in tail.damage]
    told += [range(gone.offset, gone.offset + gone.length) for gone in tail.retained]
    missing = set(by_offset) - set(offsets)
    assert [n for n in missing if n < tail.position and not any(n in stretch for stretch in told)] == []
    return not missing


def check_scanned(store: SmallStore, way: Way | None, threads: int) -> None:
    """The rows of a scan are right, however many there are."""
    by_offset = {row["physical_offset"]: row for row in store.rows}
    rows, _ = rows_and_damage(store.path, "T", way=way, verify_crc=True, threads=threads)
    for row in rows:
        assert without_properties(row) == without_properties(by_offset[row["physical_offset"]])


@pytest.mark.filterwarnings("ignore::rmqfast.errors.DamageWarning")
@pytest.mark.timeout(300 + HARMS // 10)
def test_files_that_another_process_harms_give_no_signal_and_no_wrong_row(tmp_path: Path) -> None:
    store, enough = small_store(tmp_path / "s"), tmp_path / "enough"
    end = rmqfast.open_store(store.path).tail().position
    choices: tuple[Way | None, ...] = ("log", "queue", None)
    looks, ways = 0, cycle([(way, threads) for way in choices for threads in (1, 2)])
    with subprocess.Popen([sys.executable, "-c", HARM, str(store.path), str(HARMS), str(enough)]) as harm:
        while harm.poll() is None:
            for check in (lambda: check_followed(store, end), lambda: check_scanned(store, *next(ways))):
                with suppress(StoreError, LookupError):
                    check()
            looks += 1
            if looks == LOOKS:
                enough.touch()
    assert harm.returncode == 0
    assert looks >= LOOKS
    assert check_followed(store, end)
    for way in ("log", "queue"):
        assert rows_and_damage(store.path, "T", way=way) == (store.rows, [])
