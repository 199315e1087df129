"""A store that is read beside a writer: one moment for all questions, until it is refreshed or closed."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import rmqfast
from rmqfast import AppendOptions, Message, errors
from rmqfast.store import WritableStore

OPTIONS = AppendOptions(file_size=1 << 16, queue_file_size=1000, index_slots=16, index_entries=4000)


def put(writer: WritableStore, numbers: range) -> None:
    for n in numbers:
        writer.append(Message("orders", b"b" * 50, queue_id=n % 2, keys="all"))


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[WritableStore]:
    with rmqfast.open_store(tmp_path / "store", mode="a", options=OPTIONS) as writer:
        put(writer, range(20))
        writer.flush()
        yield writer


def counts(store: rmqfast.MessageStore) -> dict[str, int]:
    """How many messages each question tells of."""
    return {
        "topics": sum(end for _, end in store.topics().get("orders", {}).values()),
        "get": store.get("orders", 0, 0, max_messages=9000).max_offset + store.get("orders", 1, 0).max_offset,
        "time": store.offset_for_time("orders", 0, "2100-01-01") + store.offset_for_time("orders", 1, "2100-01-01"),
        "scan": len(store.scan("orders").to_arrow()),
        "scan by queue": len(store.scan("orders", way="queue").to_arrow()),
        "scan by log": len(store.scan("orders", way="log").to_arrow()),
        "scan by threads": len(store.scan("orders", threads=2).to_arrow()),
        "scan of all": len(store.scan().to_arrow()),
        "query": len(store.query("orders", "all", max_messages=9000)),
    }


@pytest.mark.parametrize("more", [1, 30, 2000])  # within a page, within a file of the queue, files of the log
def test_a_store_shows_the_moment_of_its_opening_until_it_is_refreshed(writer: WritableStore, more: int) -> None:
    with rmqfast.open_store(writer.path) as store:
        scan = store.scan("orders")
        before = writer.append(Message("orders", b"behind", queue_id=0, keys="all"))
        put(writer, range(1, 1 + more))
        writer.append(Message("fresh", b"behind", queue_id=0))
        assert set(counts(store).values()) == {20}
        assert list(store.topics()) == ["orders"]
        info = store.info()
        assert info.max_offset == before.physical_offset
        with pytest.raises(errors.ArgumentError, match="before the end of the log"):
            store.message_at(before.physical_offset)
        with pytest.raises(errors.UnknownMessageError):
            store.message_by_id(before.offset_msg_id)
        store.refresh()
        all_of_orders = counts(store) | {"scan of all": 21 + more}
        assert set(all_of_orders.values()) == {21 + more}
        assert store.message_by_id(before.offset_msg_id).body == b"behind"
        assert len(scan.to_arrow()) == len(scan.to_arrow()) == 20


@pytest.mark.parametrize("has_queue", [True, False])
def test_a_topic_that_was_seen_before_its_first_message_stays(writer: WritableStore, has_queue: bool) -> None:
    """A broker makes the directory of a topic, then a queue with a file of zeroes, and then writes to the file."""
    file = writer.path / "consumequeue" / "fresh" / "0" / f"{0:020}"
    (file.parent if has_queue else file.parent.parent).mkdir(parents=True)
    if has_queue:
        file.write_bytes(bytes(OPTIONS.queue_file_size))
    with rmqfast.open_store(writer.path) as store:
        topics, end = store.topics(), store.info().max_offset
        assert ("fresh" in topics, len(store.scan("fresh").to_arrow())) == (has_queue, 0)
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(struct.pack(">qiq", end, 100, 0) + bytes(OPTIONS.queue_file_size - 20))
        assert store.topics() == topics
        assert len(store.scan("fresh").to_arrow()) == store.get("fresh", 0, 0).max_offset == 0


def test_a_store_whose_writer_begins_later_shows_the_moment_of_its_opening(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with rmqfast.open_store(path, mode="a", options=OPTIONS) as writer:
        put(writer, range(20))
    with rmqfast.open_store(path) as store:
        with rmqfast.open_store(path, mode="a", options=OPTIONS) as writer:
            put(writer, range(500))
        assert set(counts(store).values()) == {20}
        store.refresh()
        assert set(counts(store).values()) == {520}


def test_an_export_is_of_the_moment_and_a_check_of_now(writer: WritableStore, tmp_path: Path) -> None:
    with rmqfast.open_store(writer.path) as store:
        put(writer, range(100))
        writer.flush()
        report = store.export(tmp_path / "copy")
        assert (report.rows, report.ok) == (20, True)
        assert store.verify().messages == 120


def test_a_tail_follows_a_store_whatever_its_moment(writer: WritableStore) -> None:
    with rmqfast.open_store(writer.path) as store, store.tail("orders", start="begin") as tail:
        put(writer, range(5))
        rows = 0
        while rows < 25:
            rows += next(tail).num_rows
        assert set(counts(store).values()) == {20}


QUESTIONS: dict[str, Callable[[rmqfast.MessageStore], object]] = {
    "scan": lambda store: store.scan("orders"),
    "get": lambda store: store.get("orders", 0, 0),
    "query": lambda store: store.query("orders", "all"),
    "topics": lambda store: store.topics(),
    "info": lambda store: store.info(),
    "verify": lambda store: store.verify(),
    "tail": lambda store: store.tail(),
    "message_at": lambda store: store.message_at(0),
    "message_by_id": lambda store: store.message_by_id("x"),
    "offset_for_time": lambda store: store.offset_for_time("orders", 0, 0),
    "earliest_time": lambda store: store.earliest_time(),
    "check_in_disk": lambda store: store.check_in_disk("orders", 0, 0),
    "refresh": lambda store: store.refresh(),
    "export": lambda store: store.export(store.path.with_name("out")),
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_a_store_that_is_closed_answers_nothing(writer: WritableStore, question: Callable[..., object]) -> None:
    with rmqfast.open_store(writer.path) as store:
        pass
    with pytest.raises(errors.StoreError, match="the store is closed"):
        question(store)
    store.close()


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_a_store_for_appending_that_is_closed_answers_nothing(
    writer: WritableStore, question: Callable[..., object]
) -> None:
    writer.close()
    with pytest.raises(errors.StoreError, match="the store is closed"):
        question(writer)
    with pytest.raises(errors.StoreError, match="the store is closed"):
        _ = writer.live
    writer.close()


def test_scans_and_tails_of_a_store_for_appending_end_when_it_is_closed(writer: WritableStore) -> None:
    scan, tail = writer.scan("orders", batch_rows=5), writer.tail("orders", start="begin")
    batches = scan.batches()
    assert next(batches).num_rows == next(tail).num_rows - 15 == 5
    # a reader of its own
    writer.clean_unused_topics({"orders"})
    assert writer.scan("orders").to_arrow().num_rows == 20
    writer.close()
    with pytest.raises(errors.StoreError, match="the store is closed"):
        next(batches)
    with pytest.raises(errors.StoreError, match="the store is closed"):
        scan.to_arrow()
    with pytest.raises(errors.StoreError, match="the store is closed"):
        next(tail)


def test_scans_of_a_store_end_when_it_is_closed(writer: WritableStore) -> None:
    import pyarrow as pa

    store = rmqfast.open_store(writer.path)
    scan = store.scan("orders", batch_rows=5)
    batches, stream = scan.batches(), pa.RecordBatchReader.from_stream(scan)
    threads = store.scan("orders", batch_rows=5, threads=2).batches()
    assert next(batches).num_rows == stream.read_next_batch().num_rows == next(threads).num_rows == 5
    store.refresh()
    store.close()
    for going_on in (lambda: next(batches), lambda: next(threads), scan.to_arrow, scan.to_pandas, scan.to_polars):
        with pytest.raises(Exception, match="the store is closed"):
            going_on()
    with pytest.raises(Exception, match="the store is closed"):
        stream.read_next_batch()


def test_a_tail_ends_when_its_store_is_closed(writer: WritableStore) -> None:
    store = rmqfast.open_store(writer.path)
    tail = store.tail("orders", start="begin")
    assert next(tail).num_rows == 20
    store.close()
    with pytest.raises(errors.StoreError, match="the store is closed"):
        next(tail)
