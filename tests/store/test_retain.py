"""Retention of a store that is owned: old files go, what remains is whole, and nothing goes unasked."""

from __future__ import annotations

import itertools
import logging
import os
import time
from pathlib import Path
from typing import Any

import pytest

import rmqfast
from rmqfast import AppendOptions, GetMessageStatus, Message, RetentionOptions
from rmqfast.errors import ArgumentError, StoreNotFoundError, StoreNotWritableError
from rmqfast.store import WritableStore, plan_clean

LOG_FILE = 4096
DAY_MS = 86_400_000
TINY = AppendOptions(file_size=LOG_FILE, queue_file_size=200, index_slots=16, index_entries=40)
# how full the disk of this machine is must not matter
KEEP = RetentionOptions(clean_forcibly=False, warning_ratio=100)
Bounds = dict[str, dict[int, tuple[int, int]]]


def log_files(path: Path) -> list[Path]:
    return sorted((path / "commitlog").iterdir())


def age(path: Path, count: int, hours: float = 73) -> None:
    """Makes the oldest files of the log look as if they had been written so long ago."""
    when = time.time() - hours * 3600
    for file in log_files(path)[:count]:
        os.utime(file, (when, when))


def fill(store: WritableStore, numbers: range) -> None:
    for n in numbers:
        topic = "early" if n < 40 and n % 4 == 0 else f"T{n % 2}"
        store.append(Message(topic, b"%04d" % n * 20, tags=f"t{n % 3}", keys=f"k{n}", queue_id=n % 3))


def opened(path: Path, retention: RetentionOptions | None = KEEP, options: AppendOptions = TINY) -> WritableStore:
    return rmqfast.open_store(path, mode="a", options=options, retention=retention)


def bodies(store: rmqfast.MessageStore) -> list[bytes]:
    scan = store.scan(columns=["body"])
    found: list[bytes] = scan.to_arrow()["body"].to_pylist()
    assert not scan.damage
    return found


def rows_from(store: rmqfast.MessageStore, min_offset: int) -> list[Any]:
    rows = store.scan(columns=["physical_offset", "body"]).to_arrow().to_pylist()
    return [row["body"] for row in rows if row["physical_offset"] >= min_offset]


def test_what_remains_is_what_was_there_and_the_store_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with opened(path) as store:
        fill(store, range(300))
        before, bounds = rows_from(store, 5 * LOG_FILE), store.topics()
        age(path, 5)
        report = store.clean(manual=True)
        assert (report.log_files, report.min_offset, report.clock_jump_ms) == (5, 5 * LOG_FILE, 0)
        assert report.queue_files > 0
        assert report.index_files > 0
        assert report.bytes > 5 * LOG_FILE
        assert store.last_clean == report
        assert bodies(store) == before
        check_bounds(store, bounds)
        last = store.append(Message("T1", b"later", queue_id=1))
        assert last.queue_offset == bounds["T1"][1][1]
    with opened(path) as store:
        assert store.recovery is None
        assert bodies(store) == [*before, b"later"]
        assert store.append(Message("early", b"again", queue_id=1)).queue_offset == bounds["early"][1][1]
        assert store.verify().ok


def check_bounds(store: rmqfast.MessageStore, before: Bounds) -> None:
    """Maximums stay; from its minimum on a queue gives messages, before it a pull is sent there."""
    for topic, queues in store.topics().items():
        for queue_id, (low, high) in queues.items():
            assert high == before[topic][queue_id][1]
            if low > 0:
                early = store.get(topic, queue_id, low - 1)
                assert (early.status, early.next_begin_offset) == (GetMessageStatus.OFFSET_TOO_SMALL, low)
            wanted = GetMessageStatus.FOUND if low < high else GetMessageStatus.OFFSET_OVERFLOW_ONE
            assert store.get(topic, queue_id, low).status is wanted
    assert all(low == high > 0 for low, high in store.topics()["early"].values())


def test_a_clock_that_jumped_removes_nothing_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    everywhen = ";".join(map(str, range(24)))
    retention = RetentionOptions(delete_when=everywhen, clean_forcibly=False, warning_ratio=100)
    with opened(tmp_path / "s", retention) as store, caplog.at_level(logging.WARNING, "rmqfast.store"):
        fill(store, range(100))
        # a little more than ten days: the two clocks are not read in the same millisecond
        later = round(time.time() * 1000) + 10 * DAY_MS + 5_000
        report = store.clean(now=later)
        assert (report.log_files, round(report.clock_jump_ms / DAY_MS)) == (0, 10)
        assert "the time of day jumped by 864" in caplog.text
        caplog.clear()
        assert store.clean().clock_jump_ms == 0
        assert store.clean(now=later, manual=True).log_files > 0
        assert not caplog.text


def test_a_disk_that_is_too_full_takes_no_message_and_can_be_read(tmp_path: Path) -> None:
    full = RetentionOptions(warning_ratio=1, clean_forcibly=False)
    with opened(tmp_path / "s", full) as store:
        fill(store, range(10))
        report = store.clean()
        if report.is_writable:
            pytest.fail("this test needs a disk of which more than 1 % is used")
        with pytest.raises(StoreNotWritableError, match=rf"SERVICE_NOT_AVAILABLE: {report.used_ratio} % .*at most 1 %"):
            store.append(Message("T0", b"x"))
        with pytest.raises(StoreNotWritableError):
            store.append_many([Message("T0", b"x")])
        assert len(bodies(store)) == 10
        store.flush()


WRONG = [
    ({"delete_when": "25"}, "delete_when: expected hours from 00 to 23"),
    ({"force_ratio": 0}, "force_ratio: expected 1 to 100 percent, got 0"),
]


@pytest.mark.parametrize(("options", "words"), WRONG)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=words):
        opened(tmp_path / "s", RetentionOptions(**options))
    assert not (tmp_path / "s").exists()
    with pytest.raises(ArgumentError, match="expected with mode 'a' only"):
        rmqfast.open_store(tmp_path, retention=KEEP)  # type: ignore[call-overload]


def test_a_plan_changes_nothing_and_tells_what_goes(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with opened(path) as store:
        fill(store, range(600))
    age(path, 13)
    before = {file: file.stat().st_mtime_ns for file in path.rglob("*") if file.is_file()}
    files, min_offset = plan_clean(path, KEEP)
    assert {file: file.stat().st_mtime_ns for file in path.rglob("*") if file.is_file()} == before
    assert [Path(file.file) for file in files if file.kind == "commit log"] == log_files(path)[:13]
    assert {file.kind for file in files} == {"commit log", "consume queue", "index"}
    with opened(path) as store:
        runs = list(itertools.takewhile(lambda run: run.log_files, iter(lambda: store.clean(manual=True), None)))
    assert [run.log_files for run in runs] == [10, 3]
    assert (runs[-1].min_offset, sum(run.bytes for run in runs)) == (min_offset, sum(file.bytes for file in files))
    assert not any(Path(file.file).exists() for file in files)
    with pytest.raises(StoreNotFoundError):
        plan_clean(tmp_path / "nowhere")
