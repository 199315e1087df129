"""The live side of a store that is written to: raw records and bounds, as the files have them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import rmqfast
from rmqfast import AppendOptions, AppendResult, Message, RetentionOptions, WritableStore
from tests import golden_stores
from tests.waiting import until

NOW = 1_700_000_000_000
YEAR = 365 * 24 * 3_600_000
LOG_FILE = 1 << 14
SMALL = AppendOptions(file_size=LOG_FILE, queue_file_size=400, index_slots=50, index_entries=100, zone_offset_ms=0)
KEEP = RetentionOptions(clean_forcibly=False)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[WritableStore]:
    ticks = iter(range(NOW, NOW + 10_000_000, 10))
    clock = lambda: next(ticks)  # noqa: E731
    path = tmp_path / "store"
    with WritableStore(path, SMALL, retention=KEEP, clock=clock) as opened:
        yield opened


def append(store: WritableStore, count: int) -> list[AppendResult]:
    """Message `n` is stored at `NOW + 10 * n`, in queue `n % 2`."""
    return [
        store.append(Message("orders", b"%d" % n * 20, tags="a", keys=f"k{n}", queue_id=n % 2)) for n in range(count)
    ]


def in_file(path: Path, physical_offset: int) -> bytes:
    """The record as it stands in its file."""
    base = physical_offset // LOG_FILE * LOG_FILE
    data = (path / "commitlog" / f"{base:020}").read_bytes()[physical_offset - base :]
    return data[: int.from_bytes(data[:4], "big")]


def removed_and_mapped(store: WritableStore) -> list[str]:
    lines = Path("/proc/self/maps").read_text().splitlines()
    return [line for line in lines if str(store.path) in line and line.endswith("(deleted)")]


def test_files_that_are_removed_are_let_go(store: WritableStore) -> None:
    places = append(store, 300)
    assert None not in [store.live.record(place.physical_offset) for place in places]
    assert None not in [store.live.unit("orders", n % 2, place.queue_offset) for n, place in enumerate(places)]
    report = store.clean(now=NOW + 100 * YEAR, manual=True)
    assert report.log_files > 0
    assert report.queue_files > 0
    # the thread that flushes may be at one of them
    until(lambda: not removed_and_mapped(store))
    store.clean_unused_topics([])
    until(lambda: not removed_and_mapped(store))


def test_what_is_not_there_is_empty(store: WritableStore) -> None:
    (place,) = append(store, 1)
    live = store.live
    assert (live.queue_bounds("orders", 7), live.queue_bounds("nothing", 0)) == ((0, 0), (0, 0))
    assert [live.unit("orders", 0, offset) for offset in (-1, 1, 1 << 62)] == [None] * 3
    end = live.log_bounds()[1]
    assert [live.record(offset) for offset in (place.physical_offset + 1, end, 1 << 62, -1)] == [None] * 4
    assert (live.store_time("orders", 0, 1), live.store_time("nothing", 0, 0)) == (-1, -1)
    assert live.offset_for_time("nothing", 0, NOW) == 0
    assert (live.earliest_store_time("nothing"), live.earliest_store_time("nothing", 0)) == (-1, -1)
    assert live.query("orders", "nothing", 32, 0, 1 << 62) == ([], 0, 0)


def test_what_a_closed_store_left_is_shown(store: WritableStore) -> None:
    (place,) = append(store, 1)
    live = store.live
    store.close()
    assert live.record(place.physical_offset) == in_file(store.path, place.physical_offset)


@pytest.mark.parametrize("name", ["basic-4.9.4", "delaytx-4.9.4", "offsets-4.9.4"])
def test_a_brokers_store_shows_what_rocketmq_finds_in_it(name: str, tmp_path: Path) -> None:
    path, lines = golden_stores.unpack(name, tmp_path), golden_stores.expected(name)
    index = AppendOptions(index_slots=golden_stores.GEOMETRY.slots, index_entries=golden_stores.GEOMETRY.entries)
    with rmqfast.open_store(path, mode="a", options=index) as store:
        live = store.live
        for line in lines["queue"]:
            assert live.queue_bounds(line["topic"], line["queueId"]) == (line["min"], line["max"])
        for line in lines["cq"]:
            unit = live.unit(line["topic"], line["queueId"], line["cqOffset"])
            assert unit == (line["commitLogOffset"], line["size"], line["tagsCode"])
        stored = {line["commitLogOffset"]: line for line in lines["msg"]}
        for offset, line in stored.items():
            record = live.record(offset)
            assert record is not None
            assert len(record) == line["storeSize"]
        for line in lines["index"]:
            found, _, _ = live.query(line["topic"], line["key"], 64, 0, (1 << 63) - 1)
            offsets = [int.from_bytes(record[28:36], "big") for record in found]
            # those of other keys of the hash are among both
            assert offsets == sorted(line["commitLogOffsets"])[-64:]
