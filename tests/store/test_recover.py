"""Recovery: what RocketMQ recovers, and what a killed process had been told is stored."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

import rmqfast
from rmqfast import AppendOptions, Message
from rmqfast.errors import CorruptError
from rmqfast.store import repair
from tests import golden_stores
from tests.cli.command_line import run
from tests.effort import effort
from tests.golden_stores import PathOf
from tests.store.small_store import copy_open_store

SMALL = AppendOptions(file_size=1 << 16, queue_file_size=2000, index_slots=1000, index_entries=4000, zone_offset_ms=0)
Acknowledged = list[tuple[str, int, int]]  # name, queue, queue offset


def fill(path: Path, count: int) -> None:
    with rmqfast.open_store(path, mode="a", options=SMALL) as store:
        store.append_many([Message("T", b"%d" % n, queue_id=n % 2, keys=f"k{n}") for n in range(count)])


def bodies(path: Path) -> list[bytes]:
    found: list[bytes] = rmqfast.open_store(path).scan("T", verify_crc=True).to_arrow()["body"].to_pylist()
    return found


@pytest.mark.parametrize("name", ["crash-4.9.4", "damaged-4.9.4"])
def test_a_crashed_broker_s_store_is_recovered_as_rocketmq_recovers_it(golden_store_copy: PathOf, name: str) -> None:
    path = golden_store_copy(name)
    expected = golden_stores.expected(name, started=True)
    sizes = AppendOptions(index_slots=golden_stores.GEOMETRY.slots, index_entries=golden_stores.GEOMETRY.entries)
    with rmqfast.open_store(path, mode="a", options=sizes) as store:
        assert store.recovery is not None
        found = store.scan(None, verify_crc=True).to_arrow().to_pylist()
        report = store.verify()
    wanted = golden_stores.rows_of(expected["msg"], "4.9.4")
    assert [(row["physical_offset"], row["queue_offset"], row["topic"]) for row in found] == [
        (row["physical_offset"], row["queue_offset"], row["topic"]) for row in wanted
    ]
    assert (report.damage, report.unlisted) == ([], 0)
    assert report.units == len(expected["cq"])
    assert not (path / "abort").exists()


def test_a_queue_that_leads_elsewhere_is_listed_again(tmp_path: Path) -> None:
    fill(tmp_path / "s", 4)
    first, second = (tmp_path / "s" / "consumequeue" / "T" / name / ("0" * 20) for name in "01")
    whole = first.read_bytes()
    first.write_bytes(second.read_bytes())
    rmqfast.open_store(tmp_path / "s", mode="a", options=SMALL).close()
    assert first.read_bytes() == whole


def test_a_log_that_is_damaged_in_the_middle_goes_on_as_a_new_one(tmp_path: Path) -> None:
    path, out = tmp_path / "s", tmp_path / "new"
    fill(path, 100)
    log = path / "commitlog" / ("0" * 20)
    data = bytearray(log.read_bytes())
    place = rmqfast.open_store(path).get("T", 0, 40).messages[0].physical_offset
    data[place + 4] ^= 1
    log.write_bytes(data)
    with pytest.raises(CorruptError) as refused:
        repair(path)
    command = re.search("`rmqfast (.*)`", str(refused.value))
    assert command is not None
    assert run(*command[1].replace("OUT", str(out)).split()).exit_code == 1
    with rmqfast.open_store(out, mode="a", options=SMALL) as store:
        kept = store.scan("T", columns=["queue_offset"]).to_arrow()["queue_offset"].to_pylist()
        assert sorted(kept) == sorted([*range(40), *range(41, 50), *range(50)])
        assert store.append(Message("T", b"new")).queue_offset == 50


def forget_flushed_end(path: Path) -> None:
    """As RocketMQ leaves a store: its checkpoint has times alone."""
    checkpoint = path / "checkpoint"
    checkpoint.write_bytes(checkpoint.read_bytes()[:4064].ljust(4096, b"\0"))
    (path / "queue.ends").unlink(missing_ok=True)


@pytest.mark.parametrize("follow", [0, 3], ids=["at the end", "in the middle"])
@pytest.mark.parametrize("flag", [4, 12], ids=["a half message", "one that was rolled back"])
@pytest.mark.parametrize("flushed", ["said", "not said", "said, not closed", "not said, not closed"])
def test_a_log_is_not_cut_before_what_has_no_place_in_a_queue(
    tmp_path: Path, follow: int, flag: int, flushed: str
) -> None:
    path = tmp_path / "s"
    clock = iter(range(10**12, 10**13)).__next__
    with rmqfast.open_store(tmp_path / "live", mode="a", options=SMALL, clock=clock) as store:
        store.append_many([Message("T", b"%d" % n) for n in range(5)])
        store.append(Message("T", b"half"), sys_flag=flag)
        store.append_many([Message("T", b"behind")] * follow)
        store.flush()
        if "not closed" in flushed:
            # times before that of the checkpoint are of what was flushed
            store.append(Message("other", b""))
            store.flush()
            copy_open_store(store.path, path)
    if "not closed" not in flushed:
        shutil.copytree(tmp_path / "live", path)
    if "not said" in flushed:
        forget_flushed_end(path)
    before = rmqfast.open_store(path).scan(columns=["physical_offset"]).to_arrow()["physical_offset"].to_pylist()
    log = path / "commitlog" / ("0" * 20)
    data = bytearray(log.read_bytes())
    data[before[4] + 4] ^= 1
    log.write_bytes(data)
    with pytest.raises(CorruptError, match="the log goes on with messages that had been flushed"):
        rmqfast.open_store(path, mode="a", options=SMALL)
    assert log.read_bytes() == data


@pytest.mark.parametrize("is_closed", [True, False])
def test_an_empty_directory_in_place_of_the_next_file_is_removed(tmp_path: Path, is_closed: bool) -> None:
    fill(tmp_path / "s", 3)
    if not is_closed:
        (tmp_path / "s" / "abort").touch()
    directory = tmp_path / "s" / "commitlog" / f"{1 << 16:020}"
    directory.mkdir()
    with rmqfast.open_store(tmp_path / "s", mode="a", options=SMALL) as store:
        assert store.recovery is not None
        store.append_many([Message("T", b"new")] * 900)
    assert len(bodies(tmp_path / "s")) == 903
    assert directory.is_file()


def test_a_message_whose_topic_is_no_name_any_more_hinders_no_recovery(tmp_path: Path) -> None:
    fill(tmp_path / "s", 10)
    row = rmqfast.open_store(tmp_path / "s").scan("T").to_arrow().to_pylist()[4]
    log = tmp_path / "s" / "commitlog" / ("0" * 20)
    data = log.read_bytes()
    at = data.index(b"\x01T", row["physical_offset"]) + 1
    log.write_bytes(data[:at] + b"\xd4" + data[at + 1 :])
    queue = tmp_path / "s" / "consumequeue" / "T" / "1" / ("0" * 20)
    queue.write_bytes(queue.read_bytes()[:40])
    with rmqfast.open_store(tmp_path / "s", mode="a", options=SMALL) as store:
        assert store.recovery is not None
        assert store.append(Message("T", b"new", queue_id=0)).queue_offset == 5
        assert store.append(Message("T", b"new", queue_id=1)).queue_offset == 5


def test_progress_is_told(tmp_path: Path) -> None:
    store = rmqfast.open_store(tmp_path / "s", mode="a", options=SMALL)
    store.append(Message("T", b"kept"))
    del store
    told: list[tuple[int, int]] = []
    progress = lambda done, total: told.append((done, total))  # noqa: E731
    rmqfast.open_store(tmp_path / "s", mode="a", options=SMALL, progress=progress).close()
    assert told
    assert all(0 < done <= total for done, total in told)


APPENDING = """
import os, sys, threading, rmqfast
path, flush, generation = sys.argv[1:]
small = rmqfast.AppendOptions(file_size=1 << 20, queue_file_size=20_000, index_slots=1000, index_entries=4000)
store = rmqfast.open_store(path, mode="a", options=small, flush=flush)
os.write(1, b"open\\n")
def append(thread):
    for n in range(1 << 30):
        name = f"{generation}-{thread}-{n}"
        place = store.append(rmqfast.Message("T", name.encode() * 20, queue_id=thread % 3, keys=name))
        os.write(1, f"{name} {place.queue_id} {place.queue_offset}\\n".encode())
threads = [threading.Thread(target=append, args=(n,)) for n in range(4)]
[thread.start() for thread in threads]
"""


def kill_while_appending(path: Path, flush: str, generation: int, after: float) -> Acknowledged:
    """Messages that a process was told are stored, name, queue and offset, until it was killed."""
    command = [sys.executable, "-c", APPENDING, str(path), flush, str(generation)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        first = process.stdout.readline()
        time.sleep(after)  # noqa: TID251 - when it is killed is chance, and no matter
        os.kill(process.pid, signal.SIGKILL)
        lines = (first + process.stdout.read()).split(b"\n")[:-1]
    return [(name.decode(), int(queue), int(offset)) for name, queue, offset in map(bytes.split, lines)]


def check_acknowledged(path: Path, acknowledged: Acknowledged) -> None:
    with rmqfast.open_store(path, mode="a") as store:
        report = store.verify()
        columns = ["body", "queue_id", "queue_offset"]
        found = store.scan("T", columns=columns, verify_crc=True).to_arrow().to_pylist()
    assert (report.damage, report.unlisted) == ([], 0)
    places = {(row["queue_id"], row["queue_offset"]): row["body"] for row in found}
    assert len(places) == len(found), "an offset was given twice"
    lost = [name for name, queue, offset in acknowledged if places.get((queue, offset)) != name.encode() * 20]
    assert lost == []


def kills(path: Path, flush: Literal["async", "sync"], count: int) -> int:
    chance = random.Random(f"{flush} {count}")  # the same every time
    acknowledged: Acknowledged = []
    for generation in range(count):
        acknowledged += kill_while_appending(path, flush, generation, chance.uniform(0.0, 0.1))
        if generation % 20 == 19:
            check_acknowledged(path, acknowledged)
    check_acknowledged(path, acknowledged)
    return len(acknowledged)


@pytest.mark.parametrize("flush", ["async", "sync"])
def test_a_killed_process_loses_nothing_that_it_was_told_is_stored(
    tmp_path: Path, flush: Literal["async", "sync"]
) -> None:
    assert kills(tmp_path / "s", flush, 5) >= 5


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("flush", ["async", "sync"])
def test_many_kills_lose_nothing(
    tmp_path: Path, flush: Literal["async", "sync"], record_property: Callable[[str, Any], None]
) -> None:
    """A hundred times with RMQFAST_FULL=1, or as RMQFAST_KILLS says."""
    count = effort("RMQFAST_KILLS", 50, 100)
    stored = kills(tmp_path / "s", flush, count)
    record_property("acknowledged", json.dumps(stored))
    assert stored >= count
