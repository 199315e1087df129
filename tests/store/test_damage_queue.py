"""Damaged consume queues: rows come from the log, or a Damage entry names the unit; none is missing in silence."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from rmqfast.store import ScanRequest
from tests.reference.writer import Message, Options, write_store
from tests.store.scanned import opened, rows_and_damage, rows_of
from tests.store.small_store import SmallStore, small_store

HUGE = (1 << 63) - 1
UNITS = {
    "nowhere": struct.pack(">qiq", 1 << 50, 100, 0),
    "huge": struct.pack(">qiq", HUGE, 100, 0),
    "negative": struct.pack(">qiq", -1, 100, 0),
    "no size": struct.pack(">qiq", 100, 0, 0),
    "negative size": struct.pack(">qiq", 100, -1, 0),
    "huge size": struct.pack(">qiq", 100, (1 << 31) - 2, 0),
    "into a record": struct.pack(">qiq", 50, 100, 0),
    "into a record, long": struct.pack(">qiq", 50, 3000, 0),
    "another record": struct.pack(">qiq", 0, 98, 0),
    "zeroes": bytes(20),
    "pre-blank": struct.pack(">qiq", 0, (1 << 31) - 1, 0),
    "ones": b"\xff" * 20,
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> SmallStore:
    return small_store(tmp_path_factory.mktemp("written") / "store")


@pytest.fixture
def store(written: SmallStore) -> Iterator[SmallStore]:
    """A store whose queue a test may harm."""
    whole = written.queue_file.read_bytes()
    yield written
    written.queue_file.write_bytes(whole)


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
@pytest.mark.parametrize("first", [0, 1, 20, 29, 30, 45, 58, 59])
@pytest.mark.parametrize("count", [1, 3, 17])
def test_a_damaged_unit_costs_its_own_row_at_most_and_is_told(
    store: SmallStore, unit: bytes, first: int, count: int
) -> None:
    count = min(count, len(store.records) - first)
    store.patch_unit(first, unit * count)
    rows, damage = rows_and_damage(store.path, "T", way="queue")
    missing = [row for row in store.rows if row not in rows]
    assert all(first <= row["queue_offset"] < first + count for row in missing)
    assert rows == [row for row in store.rows if row not in missing]
    # a queue may begin with units that stand for nothing, but only begin
    begins_blank = unit == UNITS["pre-blank"] and first == 0
    assert bool(damage) or not missing or begins_blank
    assert all("expected" in entry.reason for entry in damage)
    log_rows, log_damage = rows_and_damage(store.path, "T", way="log")
    assert (log_rows, log_damage) == (store.rows, [])


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
@pytest.mark.parametrize("cut_bytes", [1, 500, 3000])
def test_pieces_together_are_told_of_each_unit(store: SmallStore, unit: bytes, cut_bytes: int) -> None:
    store.patch_unit(20, unit * 3)
    session = opened(store.path)
    request = ScanRequest(topic="T")
    pieces, _, _ = session.plan(request, cut_bytes=cut_bytes, way="queue")
    scans = [session.scan_pieces(request, [piece]) for piece in pieces]
    rows = [row for scan in scans for row in rows_of(scan)]
    missing = [row for row in store.rows if row not in rows]
    damage = [entry for scan in scans for entry in scan.damage]
    assert len(rows) + len(missing) == len(store.rows)
    assert len(missing) <= 3
    assert len(damage) >= len(missing)


def test_damage_of_a_unit_names_the_file_and_the_place(store: SmallStore) -> None:
    store.patch_unit(25, bytes(20))
    _, damage = rows_and_damage(store.path, "T", way="queue")
    if damage:
        assert [(d.offset, d.length, d.file) for d in damage] == [(500, 20, str(store.queue_file))]


def test_the_unit_of_another_topic_is_damage_and_not_a_row(tmp_path: Path) -> None:
    messages = [Message(topic, b"x" * 50) for _ in range(10) for topic in ("T", "U")]
    store = write_store(tmp_path / "s", messages, Options())
    other = store.path / "consumequeue/U/0" / f"{0:020d}"
    queue = store.path / "consumequeue/T/0" / f"{0:020d}"
    data = bytearray(queue.read_bytes())
    data[100:120] = other.read_bytes()[100:120]
    queue.write_bytes(data)
    rows, damage = rows_and_damage(store.path, "T", way="queue")
    assert [row["queue_offset"] for row in rows] == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    assert {row["topic"] for row in rows} == {"T"}
    assert "expected topic, queue, offset, size T 0 5" in damage[0].reason
