"""Stores that change while they are read, and scans that are interrupted."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rmqfast.errors import StoreError
from tests.reference import record
from tests.reference.consume_queue import unit_of
from tests.reference.writer import Message, Options, write_store
from tests.store.scanned import rows_and_damage
from tests.store.small_store import SmallStore, small_store


def harm(store: SmallStore, done: threading.Event) -> None:
    """Shortens, removes and replaces segments and brings them back, until done."""
    originals = {path: path.read_bytes() for path in [*store.segments, store.queue_file]}
    n = 0
    while not done.is_set():
        n += 1
        path = list(originals)[n * 7 % len(originals)]
        if n % 3 == 0:
            os.truncate(path, n * 131 % len(originals[path]))
        elif n % 3 == 1:
            path.unlink()
        else:
            replacement = path.with_name("replacement")
            replacement.write_bytes(originals[path][: n * 57 % len(originals[path])][::-1])
            replacement.replace(path)
        time.sleep(0.0005)
        path.write_bytes(originals[path])


@pytest.mark.parametrize("way", ["log", "queue"])
def test_files_that_change_under_a_scan_give_no_wrong_row(tmp_path: Path, way: str) -> None:
    store = small_store(tmp_path / "s")
    by_offset = {row["physical_offset"]: row for row in store.rows}
    done = threading.Event()
    thread = threading.Thread(target=harm, args=(store, done))
    thread.start()
    whole, end = 0, time.monotonic() + 20
    try:
        for n in range(300):
            if time.monotonic() > end:
                break
            try:
                rows, _ = rows_and_damage(store.path, "T", way=way, verify_crc=True, threads=1 + n % 2)
            except (StoreError, LookupError):
                continue
            whole += len(rows) == len(store.rows)
            for row in rows:
                # shortened and grown again, a file holds zeroes for a while: properties have no checksum
                assert {**row, "properties": 0, "tags": 0} == {
                    **by_offset[row["physical_offset"]],
                    "properties": 0,
                    "tags": 0,
                }
    finally:
        done.set()
        thread.join()
    assert n >= 50
    assert whole > 0
    assert rows_and_damage(store.path, "T", way=way) == (store.rows, [])


SCANS = {
    "to_arrow": "store.scan(columns=['body']).to_arrow()",
    "batches": "for _ in store.scan(columns=['queue_offset'], batch_rows=10).batches(): pass",
    "no hit": "store.scan('T', tags='none').to_arrow()",
    "no hit by log": "store.scan('T', tags='none', way='log').to_arrow()",
    "threads": "store.scan(columns=['properties'], threads=2).to_arrow()",
    "stream": "pyarrow.RecordBatchReader.from_stream(store.scan(columns=['tags'])).read_all()",
}


@pytest.fixture(scope="module")
def big_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One record, again and again: the reference's writer would take minutes."""
    path = tmp_path_factory.mktemp("big") / "s"
    message = Message("T", b"x" * 10, properties=(("TAGS", "a"), ("k", "v")))
    (first,) = write_store(path, [message], Options()).records
    encoded, count = record.encode(first), 1_500_000
    head, tail = encoded[:20], encoded[36:]
    offsets = ((n, n * len(encoded)) for n in range(count))
    log = b"".join(head + struct.pack(">qq", *offset) + tail for offset in offsets)
    (path / "commitlog" / f"{0:020d}").write_bytes(log)
    code = unit_of(first).tags_code
    units = b"".join(struct.pack(">qiq", n * len(encoded), len(encoded), code) for n in range(count))
    (path / "consumequeue/T/0" / f"{0:020d}").write_bytes(units)
    return path


@pytest.mark.parametrize("scan", SCANS.values(), ids=SCANS)
def test_ctrl_c_ends_a_scan_within_a_fifth_of_a_second(big_store: Path, scan: str) -> None:
    code = f"""
import pyarrow, rmqfast, time, sys, warnings
warnings.simplefilter("ignore")
store = rmqfast.open_store({str(big_store)!r})
print("ready", flush=True)
try:
    while True:
        {scan}
except KeyboardInterrupt:
    print(time.monotonic(), flush=True)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.3)
        sent = time.monotonic()
        child.send_signal(signal.SIGINT)
        ended = float(child.stdout.readline())
    assert child.returncode == 0
    # 200 ms on a machine that does nothing else
    assert ended - sent < 0.2 * 3
