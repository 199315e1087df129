"""A pull's answer as messages: the values are those that RocketMQ's own classes and a scan read."""

from __future__ import annotations

import pickle

import pytest

from rmqfast._native import COLUMNS, MessageView, decode_pull
from rmqfast.errors import CorruptError
from rmqfast.message import MessageExt, MessageQueue
from tests.golden_stores import NAMES, differences

from .records import golden_rows

BASIC = "basic-4.9.4"


@pytest.mark.parametrize("name", [name for name in NAMES if name != "damaged-4.9.4"])
def test_each_value_is_what_rocketmq_reads_from_the_same_record(name: str) -> None:
    rows, records = golden_rows(name)
    views = decode_pull(b"".join(records), broker_name=None)
    read = [{column: getattr(view, column) for column in COLUMNS} for view in views]
    assert list(differences(read, rows)) == []
    assert len(rows) > 5
    assert [view.record for view in views] == records


def test_a_view_becomes_a_message_ext_of_the_same_values() -> None:
    rows, records = golden_rows(BASIC)
    for row, view in zip(rows, decode_pull(b"".join(records), broker_name="b", verify_crc=True), strict=True):
        message = view.to_message_ext()
        assert isinstance(message, MessageExt)
        assert not list(differences([{c: getattr(message, c) for c in COLUMNS}], [row | {"broker_name": "b"}]))


def test_the_bounds_of_the_queue_are_properties_as_in_java() -> None:
    _, records = golden_rows(BASIC)
    (plain,) = decode_pull(records[0], broker_name="b")
    (view,) = decode_pull(records[0], broker_name="b", bounds=(3, 77))
    assert (plain.min_offset, plain.max_offset, plain.property("MIN_OFFSET")) == (None, None, None)
    assert (view.min_offset, view.max_offset) == (3, 77)
    assert (view.property("MIN_OFFSET"), view.property("MAX_OFFSET")) == ("3", "77")
    assert view.properties == plain.properties | {"MIN_OFFSET": "3", "MAX_OFFSET": "77"}


def test_a_message_can_be_seen_as_another_topics_and_stays_itself() -> None:
    rows, records = golden_rows(BASIC)
    (view,) = decode_pull(records[0], broker_name="b")
    seen = view.seen_as(topic="orders", reconsume_times=3)
    assert (seen.topic, seen.reconsume_times) == ("orders", 3)
    assert (view.topic, view.reconsume_times) == (rows[0]["topic"], rows[0]["reconsume_times"])
    assert seen.queue == view.queue == MessageQueue(rows[0]["topic"], "b", rows[0]["queue_id"])
    assert (seen, hash(seen)) == (view, hash(view))
    assert seen.seen_as(reconsume_times=4).topic == "orders"
    (decoded,) = decode_pull(records[0], broker_name="b", topic="orders")
    assert decoded.topic == "orders"


def test_messages_are_equal_where_broker_topic_queue_and_offset_are() -> None:
    _, records = golden_rows(BASIC)
    views = decode_pull(b"".join(records), broker_name="b")
    assert len(set(views)) == len(views) == len(records)
    assert decode_pull(records[0], broker_name="b")[0] == views[0]
    assert decode_pull(records[0], broker_name="c")[0] != views[0]
    assert views[0] != "text"


def test_a_view_survives_pickling_with_all_that_it_shows() -> None:
    _, records = golden_rows(BASIC)
    view = decode_pull(b"".join(records), broker_name="b", bounds=(0, 9))[1].seen_as(topic="x", reconsume_times=2)
    copy = pickle.loads(pickle.dumps(view))  # noqa: S301
    assert (copy, copy.topic, copy.reconsume_times, copy.max_offset) == (view, "x", 2, 9)
    assert copy.to_message_ext() == view.to_message_ext()
    assert len(pickle.dumps(view)) < view.store_size + 300, "the record alone, not the answer that it came in"


def test_the_repr_says_which_message_it_is_and_not_what_is_in_it() -> None:
    _, records = golden_rows(BASIC)
    text = repr(decode_pull(records[0], broker_name="b")[0])
    assert text.startswith("MessageView(topic='")
    assert "queue_offset=" in text
    assert "body" not in text
    assert len(text) < 300


def test_a_body_and_properties_are_made_once() -> None:
    _, records = golden_rows(BASIC)
    view = decode_pull(records[0], broker_name="b")[0]
    assert view.body is view.body
    assert view.properties is view.properties


def test_a_body_that_does_not_decompress_or_grows_too_large_is_an_error() -> None:
    rows, records = golden_rows(BASIC)
    at = next(i for i, row in enumerate(rows) if row["sys_flag"] & 1)
    small = len(rows[at]["body"]) - 1 if isinstance(rows[at]["body"], bytes) else 100
    too_large = decode_pull(records[at], broker_name=None, max_body_bytes=small)[0]
    with pytest.raises(
        CorruptError, match=rf"expected compressed bytes that become at most {small}, got \d+ that do not"
    ):
        _ = too_large.body
    assert too_large.to_message_ext().body is None
    broken = records[at][:100] + bytes(10) + records[at][110:]
    (view,) = decode_pull(broken, broker_name=None)
    where = rf"offset {view.queue_offset} of queue {view.queue_id} of {view.topic}: expected compressed bytes"
    with pytest.raises(CorruptError, match=where):
        _ = view.body
    assert view.to_message_ext().body is None


def test_a_record_alone_is_a_message() -> None:
    _, records = golden_rows(BASIC)
    view = MessageView(records[0], broker_name="b")
    assert view == decode_pull(records[0], broker_name="b")[0]
    with pytest.raises(ValueError, match="expected the bytes of one message, got 2"):
        MessageView(records[0] + records[1])
