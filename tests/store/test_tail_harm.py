"""Tails and scans of files that another process shortens, extends, replaces, removes: no signal, no wrong row."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import rmqfast
from rmqfast import Tail
from rmqfast.errors import StoreError
from rmqfast.store import milliseconds
from tests.reference import record
from tests.reference.row import Row
from tests.reference.writer import Message, Options, write_store
from tests.store.scanned import TIMES, rows_and_damage
from tests.store.small_store import FILE_SIZE, SmallStore, small_store

HARMS = int(os.environ.get("RMQFAST_HARMS", "400"))
FILES = 1000

HARM = """
import os, random, sys, time
from pathlib import Path
root, count = Path(sys.argv[1]), int(sys.argv[2])
whole = {p: p.read_bytes() for part in ("commitlog", "consumequeue") for p in (root / part).rglob("*") if p.is_file()}
paths = sorted(whole)
chance = random.Random(count)
for _ in range(count):
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


def followed(store: SmallStore, end: int, seconds: float) -> tuple[list[Row], Tail]:
    """The rows of a tail that gives up after a while."""
    tail = rmqfast.open_store(store.path).tail(start=0, stop=end, poll_interval=0.001)
    closing = threading.Timer(seconds, tail.close)
    closing.start()
    try:
        rows = [{**row, "properties": dict(row["properties"])} for batch in tail for row in batch.to_pylist()]
    finally:
        closing.cancel()
    return [{**row, **{name: milliseconds(row[name]) for name in TIMES}} for row in rows], tail


def check_followed(store: SmallStore, end: int) -> bool:
    """Whether a tail gave all rows; what it did not give it has told."""
    rows, tail = followed(store, end, 0.5)
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


@pytest.mark.filterwarnings("ignore::rmqfast.errors.DamageWarning")
@pytest.mark.timeout(60 + HARMS // 10)
def test_files_that_another_process_harms_give_no_signal_and_no_wrong_row(tmp_path: Path) -> None:
    store = small_store(tmp_path / "s")
    by_offset = {row["physical_offset"]: row for row in store.rows}
    end = rmqfast.open_store(store.path).tail().position
    whole, looks = 0, 0
    with subprocess.Popen([sys.executable, "-c", HARM, str(store.path), str(HARMS)]) as harm:
        while harm.poll() is None:
            looks += 1
            try:
                whole += check_followed(store, end)
                rows, _ = rows_and_damage(store.path, "T", verify_crc=True, threads=1 + looks % 2)
            except (StoreError, LookupError):
                continue
            for row in rows:
                assert without_properties(row) == without_properties(by_offset[row["physical_offset"]])
    assert harm.returncode == 0
    assert looks >= 5
    assert check_followed(store, end)


def write_files(path: Path, pattern: bytes, reader: Tail) -> None:
    """A record for each file; a file comes before the blank that leads to it, or behind, and is empty for a moment."""
    log = path / "commitlog"
    for n in range(FILES):
        base = n * FILE_SIZE
        if n % 2:
            blank(log, n - 1, len(pattern))
        with (log / f"{base:020d}").open("wb") as file:
            if n % 3 == 0:
                time.sleep(0.0002)
            file.truncate(FILE_SIZE)
        if n and n % 2 == 0:
            blank(log, n - 1, len(pattern))
        with (log / f"{base:020d}").open("r+b") as file:
            file.write(pattern[:20] + struct.pack(">qq", n, base) + pattern[36:])
    while reader.position < (FILES - 1) * FILE_SIZE + len(pattern):
        time.sleep(0.01)
    reader.close()


def blank(log: Path, n: int, at: int) -> None:
    with (log / f"{n * FILE_SIZE:020d}").open("r+b") as file:
        file.seek(at)
        file.write(struct.pack(">iI", FILE_SIZE - at, 0xCBD43194))


def test_a_tail_that_races_with_a_thousand_new_files_misses_none(tmp_path: Path) -> None:
    (first,) = write_store(tmp_path / "made", [Message("T", b"x" * 10)], Options()).records
    store = tmp_path / "s"
    (store / "commitlog").mkdir(parents=True)
    tail = rmqfast.open_store(store).tail(start="begin", poll_interval=0.001, columns=["queue_offset"])
    writing = threading.Thread(target=write_files, args=(store, record.encode(first), tail))
    writing.start()
    found = [n for batch in tail for n in batch.column("queue_offset").to_pylist()]
    writing.join()
    assert found == list(range(FILES))
    assert (tail.damage, tail.retained) == ([], [])
