"""A reader that was opened before others appended to the store, or removed its files, is not told of damage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import rmqfast
from rmqfast import AppendOptions, Message, ScanRequest, WritableStore

SMALL = AppendOptions(file_size=1 << 12, queue_file_size=400, index_slots=16, index_entries=100)


def append(store: WritableStore, count: int) -> None:
    for number in range(count):
        store.append(Message("orders", b"x" * 100, keys=f"k{number}"))


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[WritableStore]:
    with rmqfast.open_store(tmp_path / "store", mode="a", options=SMALL) as store:
        append(store, 20)
        store.flush()
        yield store


def test_queues_that_end_later_now_are_no_loss(writer: WritableStore) -> None:
    with rmqfast.open_store(writer.path) as reader:
        append(writer, 50)
        writer.close()
        assert reader.info().notes == []


def test_verify_passes_over_what_comes_meanwhile(writer: WritableStore) -> None:
    came: list[int] = []

    def append_meanwhile(done: int, total: int) -> None:
        if not came:
            came.append(done)
            append(writer, 150)
            writer.flush()

    with rmqfast.open_store(writer.path) as reader:
        assert reader.verify(progress=append_meanwhile).damage == []
    assert came


def test_a_plan_passes_over_files_that_are_gone(writer: WritableStore) -> None:
    append(writer, 100)
    writer.close()
    with rmqfast.open_store(writer.path) as reader:
        first = min((writer.path / "commitlog").glob("0*"))
        first.unlink()
        pieces, _, _ = reader.plan(ScanRequest(), cut_bytes=1000, way="log")
        scan = reader.scan_pieces(ScanRequest(columns=["queue_offset"]), pieces)
        with pytest.warns(rmqfast.DamageWarning, match="retention removed the file"):
            offsets = scan.to_arrow()["queue_offset"].to_pylist()
        assert offsets == list(range(offsets[0], 120))
