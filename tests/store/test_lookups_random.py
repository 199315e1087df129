"""Look-ups in stores that were thought up give what the reference gives."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rmqfast
from tests.golden_stores import differences
from tests.reference import random_store
from tests.reference.index_file import keys_of
from tests.reference.record import Record
from tests.reference.row import row_of
from tests.reference.store import Store
from tests.reference.writer import Message, Options, write_store

Written = tuple[list[Message | tuple[Message, ...]], Options]


def opened(directory: str, written: Written) -> tuple[rmqfast.MessageStore, Store, list[Record]]:
    store = write_store(Path(directory), *written)
    reference = Store.open(store.path, store.commitlog_dirs, store.options.index_geometry)
    return rmqfast.open_store(store.path, commit_log_dirs=store.commitlog_dirs), reference, store.records


def same(messages: Sequence[rmqfast.MessageExt], records: Sequence[Record]) -> list[str]:
    return list(differences([dataclasses.asdict(m) for m in messages], [row_of(record) for record in records]))


def check_gets(store: rmqfast.MessageStore, reference: Store, data: st.DataObject) -> None:
    for topic, queues in reference.topics().items():
        for queue_id, (low, high) in queues.items():
            offset = data.draw(st.integers(-1, high + 2) | st.just(low))
            count = data.draw(st.integers(1, 40))
            tags = data.draw(st.sampled_from(["*", "Aa", "TagA||BB", "Aa || 标签", "polygenelubricants"]))
            got = store.get(topic, queue_id, offset, max_messages=count, tags=tags)
            want = reference.get(topic, queue_id, offset, count, tags)
            assert (got.status.value, got.next_begin_offset) == (want.status.value, want.next_begin_offset)
            assert (got.min_offset, got.max_offset, got.damage) == (want.min_offset, want.max_offset, [])
            asked = None if tags == "*" else {tag.strip() for tag in tags.split("||")}
            assert same(got.messages, [r for r in want.records if asked is None or r.tags in asked]) == []


def check_queries(
    store: rmqfast.MessageStore, reference: Store, records: Sequence[Record], data: st.DataObject
) -> None:
    """All messages with a key, and no other."""
    pairs = sorted({(record.topic, key) for record in records for key in keys_of(record)})
    for topic, key in pairs:
        wanted = [r for r in records if r.topic == topic and key in keys_of(r)]
        assert same(store.query(topic, key, max_messages=1000), wanted) == []
        assert same(store.query(topic, key, max_messages=2), wanted[-2:]) == []
        if topic not in reference.topics():
            continue  # all its messages are half ones: without a queue a topic is only known by what is found
        begin = data.draw(st.sampled_from([0, *(record.store_timestamp for record in records)]))
        end = data.draw(st.sampled_from([1 << 62, *(r.store_timestamp for r in records if r.store_timestamp >= begin)]))
        within = [r for r in wanted if begin <= r.store_timestamp <= end]
        assert same(store.query(topic, key, begin=begin, end=end, max_messages=1000), within) == []


def check_times(store: rmqfast.MessageStore, reference: Store, records: Sequence[Record]) -> None:
    """The time of each message leads where the reference leads."""
    times = {0} | {record.store_timestamp + step for record in records for step in (-1, 0, 1)}
    for topic, queue_id in reference.queues:
        for when in times:
            five = reference.search_offset_5(topic, queue_id, when)
            four = reference.search_offset_4(topic, queue_id, when)
            assert store.offset_for_time(topic, queue_id, when) == five
            assert store.offset_for_time(topic, queue_id, when, rule="4.9.4") == four


def check_sound(store: rmqfast.MessageStore, reference: Store, records: Sequence[Record]) -> None:
    report = store.verify()
    assert report.damage == []
    assert report.messages == len(records)
    units = [unit for queue in reference.queues.values() for _, unit in queue.units() if not unit.is_pre_blank]
    assert report.units == len(units)


def flip_a_body(directory: Path, options: Options, record: Record, file_size: int) -> None:
    start = record.physical_offset // file_size * file_size
    paths = [directory / name / f"{start:020d}" for name in options.commitlog_dirs]
    path = next(path for path in paths if path.exists())
    head = 72 + (20 if record.born_host.is_v6 else 8) + (20 if record.store_host.is_v6 else 8)
    content = bytearray(path.read_bytes())
    content[record.physical_offset - start + head] ^= 1
    path.write_bytes(content)


@pytest.mark.slow
@given(random_store.stores(), st.data())
@settings(max_examples=40)
def test_a_store_is_looked_up_as_the_reference_does_it(written: Written, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store, reference, records = opened(directory, written)
        assert store.topics() == reference.topics()
        check_gets(store, reference, data)
        check_queries(store, reference, records, data)
        check_times(store, reference, records)
        check_sound(store, reference, records)
        if bodies := [record for record in records if record.body]:
            record = data.draw(st.sampled_from(bodies))
            flip_a_body(Path(directory), written[1], record, reference.log.file_size)
            assert [damage.offset for damage in store.verify().damage] == [record.physical_offset]


def test_a_damaged_last_record_is_one_damage_up_to_its_end(tmp_path: Path) -> None:
    """Its last two bytes are zeroes, the length of no properties: only its lengths say that they were written."""
    store = write_store(tmp_path, [Message("T", b"body", 0)], Options(commitlog_file_size=2048))
    (record,) = store.records
    flip_a_body(tmp_path, store.options, record, 2048)
    (damage,) = rmqfast.open_store(store.path).verify().damage
    assert (damage.offset, damage.length) == (0, record.store_size)
