"""Scans of random stores give what the reference reads, through every way, filter and batch size."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmqfast.errors import UnknownTopicError
from rmqfast.store import COLUMNS, MessageStore, ScanRequest
from rmqfast.store.reader import Way
from tests.reference import random_store
from tests.reference.commit_log import CommitLog
from tests.reference.record import Record
from tests.reference.row import Row, row_of
from tests.reference.writer import Message, Options, write_store
from tests.store.scanned import opened, rows_of

EXAMPLES = 25
Thought = tuple[list[Message | tuple[Message, ...]], Options]
Reference = dict[str, list[Row]]

TAGS = ("TagA", "Aa", "BB || 标签", "AaAa||BBBB", " 🚀 ||none", "none", "*")
SQL: tuple[tuple[str, Callable[[Row], bool]], ...] = (
    ("TAGS = 'TagA'", lambda row: row["properties"].get("TAGS") == "TagA"),
    ("TAGS IN ('Aa', 'BB')", lambda row: row["properties"].get("TAGS") in ("Aa", "BB")),
    ("KEYS IS NULL", lambda row: "KEYS" not in row["properties"]),
    ("UNIQ_KEY IS NOT NULL AND UNIQ_KEY <> 'U1'", lambda row: row["properties"].get("UNIQ_KEY", "U1") != "U1"),
)


@contextmanager
def written(thought: Thought, **options: Any) -> Iterator[tuple[MessageStore, Reference]]:
    """The store, opened, and the reference's rows: all, and by topic those that have a place in a queue."""
    with tempfile.TemporaryDirectory() as directory:
        store = write_store(Path(directory), *thought)
        records = [found for found in CommitLog.read(store.commitlog_dirs).walk() if isinstance(found, Record)]
        rows: Reference = {"": [row_of(record) for record in records]}
        for record in records:
            rows.setdefault(record.topic, [])
            if record.has_queue_place:
                rows[record.topic].append(row_of(record))
        yield opened(store.path, store.commitlog_dirs, **options), rows


def of_topic(store: MessageStore, topic: str, wanted: Sequence[Row], **options: Any) -> list[Row]:
    """What a scan of the topic gives, without damage; a topic that no queue lists may be unknown."""
    try:
        scan = store.scan(topic, **options)
    except UnknownTopicError:
        assert not wanted
        return []
    rows = rows_of(scan)
    assert scan.damage == []
    return rows


def topics(rows: Reference) -> list[str]:
    return sorted(rows.keys() - {""})


def ordered(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row["physical_offset"])


@settings(max_examples=EXAMPLES)
@given(random_store.stores(), st.booleans())
def test_a_scan_gives_the_rows_of_the_reference(thought: Thought, verify_crc: bool) -> None:
    with written(thought) as (store, rows):
        scan = store.scan(verify_crc=verify_crc)
        assert rows_of(scan) == rows[""]
        assert scan.damage == []


@settings(max_examples=EXAMPLES)
@given(random_store.stores(), st.sampled_from(["pread", "mmap"]))
def test_both_ways_of_reading_a_topic_give_the_rows_of_the_reference(thought: Thought, io: str) -> None:
    with written(thought, io=io) as (store, rows):
        for topic in topics(rows):
            for way in ("log", "queue", None):
                assert of_topic(store, topic, rows[topic], way=way) == rows[topic]


@settings(max_examples=EXAMPLES)
@given(random_store.stores(), st.integers(1, 5), st.sampled_from([1, 100, 3000]), st.sampled_from(["log", "queue"]))
def test_batches_are_bounded_and_together_the_scan(
    thought: Thought, batch_rows: int, batch_bytes: int, way: str
) -> None:
    with written(thought) as (store, rows):
        for topic in topics(rows):
            options: dict[str, Any] = {"batch_rows": batch_rows, "batch_bytes": batch_bytes, "way": way}
            assert of_topic(store, topic, rows[topic], **options) == rows[topic]
            if rows[topic]:
                sizes = [batch.num_rows for batch in store.scan(topic, **options).batches()]
                assert all(1 <= size <= batch_rows for size in sizes)


@settings(max_examples=EXAMPLES)
@given(random_store.stores(), st.sampled_from([1, 300, 2000, 5000]), st.sampled_from(["log", "queue", None]))
def test_pieces_together_are_the_scan(thought: Thought, cut_bytes: int, way: Way | None) -> None:
    with written(thought) as (store, rows):
        for topic in [None, *(topic for topic in topics(rows) if rows[topic])]:
            request = ScanRequest(topic=topic)
            pieces, _, _ = store.plan(request, cut_bytes=cut_bytes, way=way)
            found = [row for piece in pieces for row in rows_of(store.scan_pieces(request, [piece]))]
            assert found == rows[topic or ""]


@settings(max_examples=EXAMPLES)
@given(random_store.stores(), st.sampled_from(["log", "queue"]))
def test_threads_give_the_same_rows_in_any_order(thought: Thought, way: str) -> None:
    with written(thought) as (store, rows):
        assert ordered(rows_of(store.scan(threads=3))) == rows[""]
        for topic in topics(rows):
            assert ordered(of_topic(store, topic, rows[topic], way=way, threads=3)) == rows[topic]


@settings(max_examples=EXAMPLES)
@given(random_store.stores(), st.lists(st.sampled_from(COLUMNS), unique=True), st.sampled_from(["log", "queue"]))
def test_fewer_columns_are_the_same_values(thought: Thought, columns: list[str], way: str) -> None:
    with written(thought) as (store, rows):
        for topic in topics(rows):
            wanted = [{name: row[name] for name in columns} for row in rows[topic]]
            found = of_topic(store, topic, wanted, columns=columns, way=way)
            assert found == wanted
            assert all(list(row) == columns for row in found)


@settings(max_examples=EXAMPLES)
@given(random_store.stores(), st.sampled_from(TAGS), st.sampled_from(["log", "queue", None]))
def test_tags_pick_the_rows_that_have_one(thought: Thought, tags: str, way: str | None) -> None:
    words = {word.strip() for word in tags.split("||")}
    with written(thought) as (store, rows):
        for topic in topics(rows):
            wanted = [row for row in rows[topic] if tags == "*" or row["tags"] in words]
            assert of_topic(store, topic, wanted, tags=tags, way=way) == wanted


@pytest.mark.parametrize("condition", SQL, ids=[text for text, _ in SQL])
@settings(max_examples=EXAMPLES // 2)
@given(random_store.stores(), st.sampled_from(["log", "queue"]))
def test_sql_picks_the_rows_that_it_says(
    condition: tuple[str, Callable[[Row], bool]], thought: Thought, way: str
) -> None:
    text, holds = condition
    with written(thought) as (store, rows):
        for topic in topics(rows):
            wanted = [row for row in rows[topic] if holds(row)]
            assert of_topic(store, topic, wanted, sql=text, way=way) == wanted


@settings(max_examples=EXAMPLES)
@given(random_store.stores(), st.lists(st.sampled_from(["U1", "TagA", "Aa", "", "🚀", "none"])))
def test_keys_pick_the_rows_that_have_one(thought: Thought, keys: list[str]) -> None:
    with written(thought) as (store, rows):
        for topic in topics(rows):
            wanted = [
                row
                for row in rows[topic]
                if set(keys) & set((row["keys"] or "").split(" ") if row["keys"] else ())
                or row["properties"].get("UNIQ_KEY") in keys
            ]
            assert of_topic(store, topic, wanted, keys=keys) == wanted


@settings(max_examples=EXAMPLES)
@given(
    random_store.stores(),
    st.none() | st.integers(-1, 20) | st.dictionaries(st.integers(0, 3), st.integers(0, 20)),
    st.none() | st.integers(-1, 20) | st.dictionaries(st.integers(0, 3), st.integers(0, 20)),
    st.none() | st.lists(st.integers(0, 3)),
    st.sampled_from(["log", "queue", None]),
)
def test_queues_and_offsets_bound_the_rows(
    thought: Thought,
    start: int | dict[int, int] | None,
    end: int | dict[int, int] | None,
    queue_ids: list[int] | None,
    way: str | None,
) -> None:
    def bound(of: int | dict[int, int] | None, queue_id: int, default: int) -> int:
        value = of.get(queue_id) if isinstance(of, dict) else of
        return default if value is None else value

    def wanted(row: Row) -> bool:
        low, high = bound(start, row["queue_id"], 0), bound(end, row["queue_id"], 1 << 40)
        return low <= row["queue_offset"] < high and (queue_ids is None or row["queue_id"] in queue_ids)

    options: dict[str, Any] = {"start_offset": start, "end_offset": end, "queue_ids": queue_ids, "way": way}
    with written(thought) as (store, rows):
        for topic in topics(rows):
            expected = [row for row in rows[topic] if wanted(row)]
            assert of_topic(store, topic, expected, **options) == expected


@settings(max_examples=EXAMPLES)
@given(
    random_store.stores(),
    st.none() | st.integers(0, 4_000_000),
    st.none() | st.integers(0, 4_000_000),
    st.sampled_from(["log", "queue", None]),
)
def test_store_times_bound_the_rows(thought: Thought, start: int | None, end: int | None, way: str | None) -> None:
    low = None if start is None else random_store.START_MILLIS + start
    high = None if end is None else random_store.START_MILLIS + end
    with written(thought) as (store, rows):
        for topic in topics(rows):
            wanted = [r for r in rows[topic] if (low or 0) <= r["store_timestamp"] < (high or 1 << 60)]
            assert of_topic(store, topic, wanted, start_time=low, end_time=high, way=way) == wanted
