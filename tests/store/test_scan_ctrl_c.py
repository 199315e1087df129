"""Scans and exports that Ctrl-C ends, also where a library takes the batches without a word of Python."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rmqfast
from rmqfast import Message
from rmqfast.store import ScanRequest
from tests.store.ctrl_c import INTERVAL, check_ends_by_ctrl_c

OPTIONS: dict[str, dict[str, Any]] = {
    "log": {"way": "log"},
    "queue": {"way": "queue"},
    "no hit by log": {"tags": "none", "way": "log"},
    "no hit by queue": {"tags": "none", "way": "queue"},
    "threads": {"threads": 2, "way": "log"},
}
CALLS: dict[str, Callable[[rmqfast.store.Scan], Callable[[], object]]] = {
    "batch": lambda scan: scan._started.next_batch,  # noqa: SLF001 - no Python may run in it: that looks by itself
    "stream": lambda scan: pa.RecordBatchReader.from_stream(scan).read_all,
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> rmqfast.MessageStore:
    path = tmp_path_factory.mktemp("ctrl_c") / "s"
    sizes = rmqfast.AppendOptions(file_size=4096, queue_file_size=2000, index_slots=10, index_entries=40)
    with rmqfast.open_store(path, mode="a", options=sizes) as filled:
        filled.append_many([Message("T", b"x" * 100, tags="a")] * 100)
    return rmqfast.open_store(path)


@pytest.mark.parametrize("made", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_ctrl_c_ends_a_scan_before_its_next_block(
    store: rmqfast.MessageStore,
    options: dict[str, Any],
    made: Callable[[rmqfast.store.Scan], Callable[[], object]],
) -> None:
    action = made(store.scan("T", **options))
    time.sleep(INTERVAL)  # noqa: TID251 - it has gone on for so long: from here on it looks
    check_ends_by_ctrl_c(action)


def test_ctrl_c_ends_an_export_and_leaves_nothing(store: rmqfast.MessageStore, tmp_path: Path) -> None:
    # of C, as the signal: it keeps the export busy for as long as it does not look
    sleeping = partial(ctypes.CDLL(None).usleep, round(INTERVAL * 1e6))
    options = (ScanRequest(), str(tmp_path / "out"))
    check_ends_by_ctrl_c(partial(store._native.export, *options, sizes=(None, 0), progress=sleeping))  # noqa: SLF001 - as above
    assert list(tmp_path.iterdir()) == []
