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
from rmqfast.store.scan_source import Way
from tests.reference import random_store
from tests.reference.commit_log import CommitLog
from tests.reference.record import Record
from tests.reference.row import Row, row_of
from tests.reference.writer import Message, Options, write_store
from tests.store.scanned import opened, rows_of

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


WAYS: tuple[Way | None, ...] = ("log", "queue", None)
bounds = st.none() | st.integers(-1, 20) | st.dictionaries(st.integers(0, 3), st.integers(0, 20))
times = st.none() | st.integers(random_store.START_MILLIS, random_store.START_MILLIS + 4_000_000)
BY_WAY = ("log", "queue")


def check_filters(store: MessageStore, topic: str, rows: Sequence[Row], data: st.DataObject) -> None:
    """Each filter picks the rows that it says."""

    def picked(holds: Callable[[Row], object], **options: Any) -> None:
        wanted = [row for row in rows if holds(row)]
        assert of_topic(store, topic, wanted, way=data.draw(st.sampled_from(WAYS)), **options) == wanted

    tags = data.draw(st.sampled_from(TAGS))
    words = {word.strip() for word in tags.split("||")}
    picked(lambda row: tags == "*" or row["tags"] in words, tags=tags)

    for text, holds in SQL:
        picked(holds, sql=text)

    keys = data.draw(st.lists(st.sampled_from(["U1", "TagA", "Aa", "", "🚀", "none"])))
    picked(
        lambda row: (
            set(keys) & set((row["keys"] or "").split(" ") if row["keys"] else ())
            or row["properties"].get("UNIQ_KEY") in keys
        ),
        keys=keys,
    )

    low = data.draw(times)
    high = data.draw(times.filter(lambda time: time is None or time >= (low or 0)))
    picked(lambda row: (low or 0) <= row["store_timestamp"] < (high or 1 << 60), start_time=low, end_time=high)


def check_bounds(store: MessageStore, topic: str, rows: Sequence[Row], data: st.DataObject) -> None:
    """Queues and their offsets bound the rows."""
    start, end = data.draw(bounds), data.draw(bounds)
    queue_ids = data.draw(st.none() | st.lists(st.integers(0, 3)))

    def bound(of: int | dict[int, int] | None, queue_id: int, default: int) -> int:
        value = of.get(queue_id) if isinstance(of, dict) else of
        return default if value is None else value

    def holds(row: Row) -> bool:
        low, high = bound(start, row["queue_id"], 0), bound(end, row["queue_id"], 1 << 40)
        return low <= row["queue_offset"] < high and (queue_ids is None or row["queue_id"] in queue_ids)

    options: dict[str, Any] = {"start_offset": start, "end_offset": end, "queue_ids": queue_ids}
    wanted = [row for row in rows if holds(row)]
    assert of_topic(store, topic, wanted, way=data.draw(st.sampled_from(WAYS)), **options) == wanted


def check_batches(store: MessageStore, topic: str, rows: Sequence[Row], data: st.DataObject) -> None:
    """Batches are bounded, and together the scan."""
    batch_rows, batch_bytes = data.draw(st.integers(1, 5)), data.draw(st.sampled_from([1, 100, 3000]))
    options: dict[str, Any] = {"batch_rows": batch_rows, "batch_bytes": batch_bytes}
    options |= {"way": data.draw(st.sampled_from(BY_WAY))}
    assert of_topic(store, topic, rows, **options) == rows
    if rows:
        assert all(1 <= batch.num_rows <= batch_rows for batch in store.scan(topic, **options).batches())


def check_pieces(store: MessageStore, topic: str | None, rows: Sequence[Row], data: st.DataObject) -> None:
    """Pieces together are the scan."""
    request, cut_bytes = ScanRequest(topic=topic), data.draw(st.sampled_from([1, 300, 2000, 5000]))
    pieces, _, _ = store.plan(request, cut_bytes=cut_bytes, way=data.draw(st.sampled_from(WAYS)))
    assert [row for piece in pieces for row in rows_of(store.scan_pieces(request, [piece]))] == rows


def check_columns(store: MessageStore, topic: str, rows: Sequence[Row], data: st.DataObject) -> None:
    """Fewer columns are the same values, in the order that was asked for."""
    columns = data.draw(st.lists(st.sampled_from(COLUMNS), unique=True))
    wanted = [{name: row[name] for name in columns} for row in rows]
    found = of_topic(store, topic, wanted, columns=columns, way=data.draw(st.sampled_from(BY_WAY)))
    assert found == wanted
    assert all(list(row) == columns for row in found)


def check_property_names(store: MessageStore, topic: str, rows: Sequence[Row], data: st.DataObject) -> None:
    """Chosen properties are those of all, in their order."""
    stored = sorted({name for row in rows for name in row["properties"]})
    names = data.draw(st.lists(st.sampled_from(["none", *stored]), min_size=1))
    wanted = [[pair for pair in row["properties"].items() if pair[0] in names] for row in rows]
    options: dict[str, Any] = {"columns": ["properties"], "property_names": names}
    found = of_topic(store, topic, rows, way=data.draw(st.sampled_from(BY_WAY)), **options)
    assert [list(row["properties"].items()) for row in found] == wanted


@pytest.mark.slow
@settings(max_examples=25)
@given(random_store.stores(), st.sampled_from(["auto", "pread", "mmap"]), st.data())
def test_a_store_is_scanned_as_the_reference_reads_it(thought: Thought, io: str, data: st.DataObject) -> None:
    with written(thought, io=io) as (store, rows):
        scan = store.scan(verify_crc=data.draw(st.booleans()))
        assert rows_of(scan) == rows[""]
        assert scan.damage == []
        assert ordered(rows_of(store.scan(threads=3))) == rows[""]
        check_pieces(store, None, rows[""], data)
        for topic in topics(rows):
            for way in WAYS:
                assert of_topic(store, topic, rows[topic], way=way) == rows[topic]
            way = data.draw(st.sampled_from(BY_WAY))
            assert ordered(of_topic(store, topic, rows[topic], way=way, threads=3)) == rows[topic]
            check_batches(store, topic, rows[topic], data)
            check_columns(store, topic, rows[topic], data)
            check_property_names(store, topic, rows[topic], data)
            check_filters(store, topic, rows[topic], data)
            check_bounds(store, topic, rows[topic], data)
            if rows[topic]:
                check_pieces(store, topic, rows[topic], data)
