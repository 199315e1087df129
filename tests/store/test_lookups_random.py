"""Look-ups in stores that were thought up give what the reference gives."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path

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
EXAMPLES = settings(max_examples=40)


def opened(directory: str, written: Written) -> tuple[rmqfast.MessageStore, Store, list[Record]]:
    store = write_store(Path(directory), *written)
    reference = Store.open(store.path, store.commitlog_dirs, store.options.index_geometry)
    return rmqfast.open_store(store.path, commit_log_dirs=store.commitlog_dirs), reference, store.records


def same(messages: Sequence[rmqfast.MessageExt], records: Sequence[Record]) -> list[str]:
    return list(differences([dataclasses.asdict(m) for m in messages], [row_of(record) for record in records]))


@given(random_store.stores())
@EXAMPLES
def test_topics_are_those_of_the_reference(written: Written) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store, reference, _ = opened(directory, written)
        assert store.topics() == reference.topics()


@given(random_store.stores(), st.data())
@EXAMPLES
def test_a_get_gives_what_the_reference_gives(written: Written, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store, reference, _ = opened(directory, written)
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


@given(random_store.stores(), st.data())
@EXAMPLES
def test_a_query_gives_all_messages_with_the_key_and_no_other(written: Written, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store, reference, records = opened(directory, written)
        pairs = sorted({(record.topic, key) for record in records for key in keys_of(record)})
        for topic, key in pairs:
            wanted = [r for r in records if r.topic == topic and key in keys_of(r)]
            assert same(store.query(topic, key, max_messages=1000), wanted) == []
            assert same(store.query(topic, key, max_messages=2), wanted[-2:]) == []
            if topic not in reference.topics():
                continue  # all its messages are half ones: without a queue a topic is only known by what is found
            begin = data.draw(st.sampled_from([0, *(record.store_timestamp for record in records)]))
            end = data.draw(st.sampled_from([1 << 62, *(record.store_timestamp for record in records)]))
            within = [r for r in wanted if begin <= r.store_timestamp <= end]
            assert same(store.query(topic, key, begin=begin, end=end, max_messages=1000), within) == []


@given(random_store.stores())
@EXAMPLES
def test_the_time_of_each_message_leads_where_the_reference_leads(written: Written) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store, reference, records = opened(directory, written)
        times = {0} | {record.store_timestamp + step for record in records for step in (-1, 0, 1)}
        for topic, queue_id in reference.queues:
            for when in times:
                five = reference.search_offset_5(topic, queue_id, when)
                four = reference.search_offset_4(topic, queue_id, when)
                assert store.offset_for_time(topic, queue_id, when) == five
                assert store.offset_for_time(topic, queue_id, when, rule="4.9.4") == four


@given(random_store.stores())
@EXAMPLES
def test_a_written_store_is_sound(written: Written) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store, reference, records = opened(directory, written)
        report = store.verify()
        assert report.damage == []
        assert report.messages == len(records)
        units = [unit for queue in reference.queues.values() for _, unit in queue.units() if not unit.is_pre_blank]
        assert report.units == len(units)


@given(random_store.stores(), st.data())
@EXAMPLES
def test_a_flipped_bit_of_a_body_is_found_and_nothing_else(written: Written, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store, reference, records = opened(directory, written)
        bodies = [record for record in records if record.body]
        if not bodies:
            return
        record = data.draw(st.sampled_from(bodies))
        size = reference.log.file_size
        start = record.physical_offset // size * size
        paths = [Path(directory) / name / f"{start:020d}" for name in written[1].commitlog_dirs]
        path = next(path for path in paths if path.exists())
        head = 72 + (20 if record.born_host.is_v6 else 8) + (20 if record.store_host.is_v6 else 8)
        content = bytearray(path.read_bytes())
        content[record.physical_offset - start + head] ^= 1
        path.write_bytes(content)
        assert [damage.offset for damage in store.verify().damage] == [record.physical_offset]
