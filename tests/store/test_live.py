"""The live side of a store that is written to: raw records and bounds, as the files have them."""

from __future__ import annotations

import os
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


def test_records_units_and_times_are_those_of_the_files(store: WritableStore) -> None:
    places = append(store, 300)
    live = store.live
    assert live.queue_bounds("orders", 0) == live.queue_bounds("orders", 1) == (0, 150)
    for n, place in enumerate(places):
        record = live.record(place.physical_offset)
        assert record == in_file(store.path, place.physical_offset)
        assert b"%d" % n * 20 in record
        assert live.store_time("orders", n % 2, place.queue_offset) == NOW + 10 * n
        unit = live.unit("orders", n % 2, place.queue_offset)
        assert unit == (place.physical_offset, len(record), 97)
    last = places[-1].physical_offset
    assert live.log_bounds() == (0, last + len(in_file(store.path, last)))
    assert live.earliest_store_time() == live.earliest_store_time("orders") == NOW
    assert live.earliest_store_time("orders", 1) == NOW + 10


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


def test_an_offset_for_a_time_is_that_of_a_reader_of_the_files(store: WritableStore) -> None:
    append(store, 300)
    store.flush()  # what is flushed later would be a change of the file
    for file in (store.path / "consumequeue" / "orders" / "1").iterdir():
        # as when each had been written to with its last message, of twenty: every other one of the store
        last = NOW + 10 * min(299, 2 * (int(file.name) // 20 + 19) + 1)
        os.utime(file, ns=(0, last * 1_000_000))
    found = set()
    for when in range(NOW - 25, NOW + 3_050, 7):
        expected = store.offset_for_time("orders", 1, when, rule="4.9.4")
        assert store.live.offset_for_time("orders", 1, when) == expected, when
        found.add(expected)
    assert len(found) == 150


def test_a_key_finds_the_newest_records_under_its_hash(store: WritableStore) -> None:
    places = append(store, 250)
    again = store.append(Message("orders", b"again", keys="k7"))
    found, timestamp, physical_offset = store.live.query("orders", "k7", 32, 0, 1 << 62)
    wanted = [in_file(store.path, place.physical_offset) for place in (places[7], again)]
    assert [record for record in found if b"k7" in record] == wanted
    assert (timestamp, physical_offset) == (NOW + 2_500, again.physical_offset)
    assert store.live.query("orders", "k7", 1, 0, 1 << 62)[0] == wanted[1:]
    assert store.live.query("orders", "k7", 32, 0, NOW + 1_500)[0] == wanted[:1]


def test_bounds_go_on_when_retention_removes_and_the_rest_stays(store: WritableStore) -> None:
    places = append(store, 300)
    report = store.clean(now=NOW + 100 * YEAR, manual=True)
    begin, _ = store.live.log_bounds()
    assert report.log_files > 0
    assert begin == report.log_files * LOG_FILE
    for queue_id in (0, 1):
        minimum, maximum = store.live.queue_bounds("orders", queue_id)
        first = next(n for n, p in enumerate(places) if p.physical_offset >= begin and n % 2 == queue_id)
        assert (minimum, maximum) == (places[first].queue_offset, 150)
        assert store.live.earliest_store_time("orders", queue_id) == NOW + 10 * first
    assert [store.live.record(p.physical_offset) is None for p in places] == [p.physical_offset < begin for p in places]


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
