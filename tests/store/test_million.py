"""Very many random messages: appended by processes that are killed, mended, read by the real 4.9.4, lent to it."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rmqfast
from rmqfast import AppendOptions, Message
from tests import golden_stores
from tests.effort import effort
from tests.interop.dump_store import dumped

from .test_handover import lend

ROWS_OF_A_BATCH = 5000
BATCHES = effort("RMQFAST_MESSAGES", 200_000, 1_000_000) // ROWS_OF_A_BATCH
# the geometry of the broker that the store is lent to
OPTIONS = AppendOptions(file_size=1 << 20, queue_file_size=20_000, index_slots=1000, index_entries=4000)
TAGS = (None, "TagA", "Aa", "BB", "标签", "ταγ", "🚀")
TOPICS = ("T", "orders", "%RETRY%g", "t" * 127)
HOSTS = ("127.0.0.1:10911", "10.1.2.3:0", "[fd00::2]:40000", "[::1]:65535")


def batch(number: int) -> pa.Table:
    """Messages of all kinds but light queues, the same for the same number."""
    r = random.Random(number)
    rows = range(ROWS_OF_A_BATCH)
    bodies = r.randbytes(200)
    names = pa.array(
        [_properties(r, number * ROWS_OF_A_BATCH + row) for row in rows], pa.map_(pa.string(), pa.string())
    )
    return pa.table(
        {
            "topic": r.choices(TOPICS, k=len(rows)),
            "body": [bodies[r.randrange(200) :] + b"%d" % row for row in rows],
            "tags": r.choices(TAGS, k=len(rows)),
            "keys": [f"k{number} k{row}" if row % 7 == 0 else None for row in rows],
            "properties": names,
            "queue_id": r.choices(range(4), k=len(rows)),
            "flag": r.choices([0, 1, -7, 2**31 - 1], k=len(rows)),
            "sys_flag": r.choices([0, 0, 0, 0, 0, 0, 0x2, 0x4, 0x8, 0xC], k=len(rows)),
            "born_host": r.choices(HOSTS, k=len(rows)),
            "born_timestamp": [1_600_000_000_000 + row for row in rows],
            "reconsume_times": r.choices(range(4), k=len(rows)),
            "prepared_transaction_offset": r.choices(range(1000), k=len(rows)),
        }
    )


def _properties(r: random.Random, number: int) -> list[tuple[str, str]]:
    found = [("UNIQ_KEY", f"U{number:X}")] if number % 3 else []
    if number % 11 == 0:
        found.append(("DELAY", str(r.randint(15, 18))))
    if number % 5 == 0:
        found.append(("ключ-键", "значение 🚀"))
    return found


def append_in_a_process(path: Path, first: int, last: int) -> subprocess.Popen[str]:
    """Appends batches and prints the number of each that is stored."""
    code = "import sys; from pathlib import Path; from tests.store.test_million import append; "
    code += f"append(Path(sys.argv[1]), {first}, {last})"
    command = [sys.executable, "-c", code, str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])


def append(path: Path, first: int, last: int) -> None:
    with rmqfast.open_store(path, mode="a", options=OPTIONS) as store:
        for number in range(first, last):
            store.append_many(batch(number))
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()


def fill(path: Path) -> None:
    """All messages; the process is killed once in each quarter."""
    first = 0
    quarter = BATCHES // 4
    while first < BATCHES:
        process = append_in_a_process(path, first, BATCHES)
        assert process.stdout is not None
        for line in process.stdout:
            first = int(line) + 1
            if first % quarter == quarter * 3 // 5:
                os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def scanned(path: Path) -> Iterator[dict[str, Any]]:
    for found in rmqfast.open_store(path).scan(None, verify_crc=True).batches():
        yield from pa.record_batch(found).to_pylist()


def check_by_rocketmq(path: Path) -> tuple[int, int]:
    """Compares row by row. Returns how many messages and how many units there are."""
    ours, messages, units = scanned(path), 0, 0
    flags = ("--slots", OPTIONS.index_slots, "--index-num", OPTIONS.index_entries, "--no-index")
    for line in dumped("4.9.4", path, *flags):
        if line["kind"] == "msg":
            (wanted,) = golden_stores.rows_of([line], "4.9.4")
            row = next(ours)
            for name in ("born_timestamp", "store_timestamp"):
                row[name] = round(row[name].timestamp() * 1000)
            row["properties"] = dict(row["properties"])
            assert list(golden_stores.differences([row], [wanted])) == []
            messages += 1
        elif line["kind"] == "cq":
            assert line["leadsToMessage"], line
            units += 1
        else:
            assert line["kind"] in {"store", "blank", "end", "queue", "get"}, line
    assert next(ours, None) is None
    return messages, units


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_hundreds_of_thousands_of_messages_are_read_by_the_real_rocketmq(tmp_path: Path) -> None:
    """A million with RMQFAST_FULL=1, or as RMQFAST_MESSAGES says."""
    store = tmp_path / "mq" / "store"
    fill(store)
    shutil.rmtree(store / "consumequeue" / "orders")
    report = rmqfast.store.repair(store, options=OPTIONS)
    messages, units = check_by_rocketmq(store)
    assert messages >= ROWS_OF_A_BATCH * BATCHES
    assert 0 < report.units < units < messages
    told = lend(tmp_path / "mq", 1)
    with rmqfast.open_store(store, mode="a", options=OPTIONS) as again:
        assert again.append(Message("T", b"last", queue_id=told[-1][1])).queue_offset > told[-1][2]
        found = again.verify()
        assert (found.damage, found.messages) == ([], messages + len(told) + 1)
