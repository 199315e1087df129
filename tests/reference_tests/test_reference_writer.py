"""What the reference writer writes, the reference reader reads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference import random_store, record
from tests.reference.consume_queue import java_hash
from tests.reference.get_message import Status
from tests.reference.host import Host
from tests.reference.index_file import Geometry, keys_of
from tests.reference.random_store import FILE_SIZE
from tests.reference.record import Blank, Record
from tests.reference.store import Store
from tests.reference.writer import Message, Options, WrittenStore, write_store

Messages = Sequence[Message | Sequence[Message]]
SMALL = Options(commitlog_file_size=FILE_SIZE, consume_queue_file_size=100)
# a message of topic T without properties takes 92 bytes and its body
OVERHEAD = 92


def open_store(written: WrittenStore) -> Store:
    return Store.open(written.path, written.commitlog_dirs, written.options.index_geometry)


def write_and_open(directory: str | Path, messages: Messages, options: Options = SMALL) -> Store:
    return open_store(write_store(Path(directory), messages, options))


def check_records(written: WrittenStore, records: list[Record], items: Messages) -> None:
    """Every message comes back as it was written."""
    messages = [m for item in items for m in ([item] if isinstance(item, Message) else item)]
    assert records == written.records
    assert [r.plain_body for r in records] == [m.body for m in messages]
    assert [(r.topic, r.queue_id, r.flag) for r in records] == [(m.topic, m.queue_id, m.flag) for m in messages]
    assert [(r.born_host, r.store_host) for r in records] == [(m.born_host, m.store_host) for m in messages]
    for found, message in zip(records, messages, strict=True):
        wanted = {name: value for name, value in message.properties if value}
        assert {name: value for name, value in found.properties.items() if name != "__CRC32#"} == wanted
        assert record.verify_property_crc(record.encode(found)) == written.options.property_crc


def check_queues(opened: Store) -> None:
    """The units of the queues lead to every message that has a place, and to no other."""
    for key, units in opened.rebuilt_queues().items():
        on_disk = {offset: unit for offset, unit in opened.queues[key].units() if not unit.is_pre_blank}
        assert on_disk == units
        # a queue whose units start late has its min offset at the first of them
        assert opened.topics()[key[0]][key[1]] == (min(units), max(units) + 1)
    assert set(opened.queues) == set(opened.rebuilt_queues())


def check_index(opened: Store, records: list[Record]) -> None:
    for topic, key_text in {(r.topic, key) for r in records for key in keys_of(r)}:
        wanted = [r for r in records if r.topic == topic and key_text in keys_of(r)]
        assert opened.query(topic, key_text) == wanted


def check_gets(opened: Store, tags: str) -> None:
    """To get a queue gives each message whose hash matches once."""
    codes = {java_hash(tag.strip()) for tag in tags.split("||")}
    for (topic, queue_id), units in opened.rebuilt_queues().items():
        got, (offset, end) = list[int](), opened.topics()[topic][queue_id]
        while offset < end:
            result = opened.get(topic, queue_id, offset, max_messages=3, tags=tags)
            assert result.next_begin_offset > offset
            got += [found.queue_offset for found in result.records]
            offset = result.next_begin_offset
        wanted = [at for at, unit in sorted(units.items()) if tags == "*" or _low_32(unit.tags_code) in codes]
        assert got == wanted


def _low_32(code: int) -> int:
    return ((code + (1 << 31)) % (1 << 32)) - (1 << 31)


def check_times(opened: Store, shift: int) -> None:
    """A time leads to the first message not before it."""
    for (topic, queue_id), units in opened.rebuilt_queues().items():
        low, high = opened.topics()[topic][queue_id]
        times = {at: _stored_at(opened, unit.physical_offset) for at, unit in units.items()}
        for time in {value + shift for value in times.values()}:
            lower = opened.search_offset_5(topic, queue_id, time)
            upper = opened.search_offset_5(topic, queue_id, time, upper=True)
            assert all(value < time for at, value in times.items() if at < lower)
            assert all(value >= time for at, value in times.items() if at >= lower)
            assert upper == max((at for at, value in times.items() if value <= time), default=low)
            # 4.9 takes the nearest one of one file
            assert low <= opened.search_offset_4(topic, queue_id, time) < high


@settings(max_examples=25)
@given(
    store=random_store.stores(),
    tags=st.sampled_from(["*", "TagA", "Aa", "BBBB || 🚀"]),
    shift=st.sampled_from([-1, 0, 1, 500]),
)
def test_what_is_written_is_found_by_each_way(store: tuple[Messages, Options], tags: str, shift: int) -> None:
    with TemporaryDirectory() as directory:
        written = write_store(Path(directory), *store)
        opened = open_store(written)
    records = opened.records()
    check_records(written, records, store[0])
    check_queues(opened)
    check_index(opened, records)
    check_gets(opened, tags)
    check_times(opened, shift)


def _stored_at(store: Store, physical_offset: int) -> int:
    found = store.message_at(physical_offset)
    assert found is not None
    return found.store_timestamp


def test_4_9_takes_the_nearest_message_and_the_last_one_after_the_end(tmp_path: Path) -> None:
    times = [1_000_000_000_000 + millis for millis in (0, 10, 20, 1000)]
    opened = write_and_open(tmp_path, [Message("T", store_timestamp=time) for time in times])
    asked = [-5, 0, 4, 5, 6, 14, 20, 500, 511, 5000]
    assert [opened.search_offset_4("T", 0, times[0] + at) for at in asked] == [0, 0, 0, 0, 1, 1, 2, 2, 3, 3]
    assert [opened.search_offset_5("T", 0, times[0] + at) for at in asked] == [0, 0, 1, 1, 1, 2, 2, 3, 3, 4]
    assert opened.search_offset_4("T", 9, times[0]) == opened.search_offset_5("T", 9, times[0]) == 0


def test_4_9_chooses_the_file_by_its_modification_time(tmp_path: Path) -> None:
    times = [1_000_000_000_000 + 10 * number for number in range(12)]
    written = write_store(tmp_path, [Message("T", store_timestamp=time) for time in times], SMALL)
    assert open_store(written).search_offset_4("T", 0, times[7]) == 7
    first = tmp_path / "consumequeue" / "T" / "0" / f"{0:020d}"
    os.utime(first, ns=(times[11] * 1_000_000, times[11] * 1_000_000))
    # the last unit of the first file, though message 7 has just that time
    assert open_store(written).search_offset_4("T", 0, times[7]) == 4
    assert open_store(written).search_offset_5("T", 0, times[7]) == 7


@pytest.mark.parametrize("free", range(20))
def test_a_record_stays_in_its_file_when_eight_bytes_are_left_behind_it(tmp_path: Path, free: int) -> None:
    first = Message("T", bytes(FILE_SIZE - 2 * OVERHEAD - free))
    opened = write_and_open(tmp_path, [first, Message("T")])
    found = list(opened.walk())
    assert [type(item) for item in found] == ([Record, Record] if free >= 8 else [Record, Blank, Record])
    assert found[-1] == opened.message_at(FILE_SIZE - OVERHEAD - free if free >= 8 else FILE_SIZE)


def test_a_batch_is_never_split_over_two_files(tmp_path: Path) -> None:
    first = Message("T", bytes(FILE_SIZE - 3 * OVERHEAD))
    opened = write_and_open(tmp_path, [first, (Message("T"), Message("T"))])
    assert [found.physical_offset for found in opened.records()] == [0, FILE_SIZE, FILE_SIZE + OVERHEAD]


def test_a_message_larger_than_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="do not fit"):
        write_and_open(tmp_path, [Message("T", bytes(FILE_SIZE))])


def test_the_files_of_several_directories_are_one_log(tmp_path: Path) -> None:
    options = replace(SMALL, commitlog_dirs=("a", "b"), first_file=1, preallocated=True)
    messages = [Message("T", bytes(900), store_timestamp=1) for _ in range(9)]
    opened = write_and_open(tmp_path, messages, options)
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [f"{k * FILE_SIZE:020d}" for k in (2, 4, 6)]
    assert len(opened.records()) == 9
    assert (opened.log.min_offset, opened.end_offset) == (FILE_SIZE, 5 * FILE_SIZE + 992)


def test_a_queue_that_starts_late_begins_with_pre_blank_units(tmp_path: Path) -> None:
    opened = write_and_open(tmp_path, [Message("T")], replace(SMALL, first_queue_offsets={("T", 0): 8}))
    queue = opened.queues["T", 0]
    assert list(queue.files) == [100]
    assert [unit.is_pre_blank for _, unit in queue.units()] == [True, True, True, False]
    assert opened.topics() == {"T": {0: (8, 9)}}
    assert opened.get("T", 0, 7).status == Status.OFFSET_TOO_SMALL


def test_a_message_gone_with_its_file_is_skipped_up_to_the_next_file(tmp_path: Path) -> None:
    written = write_store(tmp_path, [Message("T", bytes(900)) for _ in range(5)], SMALL)
    (written.commitlog_dirs[0] / f"{FILE_SIZE:020d}").unlink()
    result = open_store(written).get("T", 0, 2)
    assert (result.status, result.next_begin_offset, [r.queue_offset for r in result.records]) == (Status.FOUND, 5, [4])


def test_a_log_ends_at_the_first_damaged_record_and_says_so(tmp_path: Path) -> None:
    written = write_store(tmp_path, [Message("T", b"body") for _ in range(5)], SMALL)
    path = written.commitlog_dirs[0] / f"{0:020d}"
    data = bytearray(path.read_bytes())
    data[written.records[3].physical_offset + 88] ^= 1
    path.write_bytes(data)
    walk = open_store(written).walk()
    assert list(walk) == written.records[:3]
    assert (walk.end_offset, walk.end_reason[:8]) == (written.records[3].physical_offset, "body crc")
    assert len(list(open_store(written).walk(verify_crc=False))) == 5


def test_a_blank_without_a_file_behind_it_is_the_end(tmp_path: Path) -> None:
    written = write_store(tmp_path, [Message("T", bytes(1200)), Message("T", bytes(1200))], SMALL)
    (written.commitlog_dirs[0] / f"{FILE_SIZE:020d}").unlink()
    walk = open_store(written).walk()
    assert (list(walk), walk.end_offset, walk.end_reason) == (written.records[:1], 1292, "")


def test_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    messages = [Message("T", b"x" * 500, properties=(("KEYS", "a b"),), compression="zstd") for _ in range(20)]
    options = replace(SMALL, index_geometry=Geometry(3, 7), trailing_separator=True)
    for name in ("first", "second"):
        write_store(tmp_path / name, messages, options)
    first, second = (
        {
            path.relative_to(tmp_path / name): path.read_bytes()
            for path in (tmp_path / name).rglob("*")
            if path.is_file()
        }
        for name in ("first", "second")
    )
    assert first == second
    assert len([path for path in first if path.parts[0] == "index"]) == 7


def test_ipv6_hosts_are_kept_and_flagged(tmp_path: Path) -> None:
    message = Message("T", born_host=Host("fd00::2", 40000), store_host=Host("::1", 10911))
    row = write_and_open(tmp_path, [message]).rows()[0]
    assert (row["born_host"], row["store_host"], row["sys_flag"]) == ("[fd00::2]:40000", "[::1]:10911", 0x30)
    assert row["offset_msg_id"] == "0" * 31 + "1" + "00002A9F" + "0" * 16
