"""What a scan is asked for: several topics, times, and what is refused before anything is read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rmqfast
from rmqfast.errors import ArgumentError
from rmqfast.store import milliseconds
from tests.golden_stores import PathOf

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture
def store(golden_store: PathOf) -> rmqfast.MessageStore:
    return rmqfast.open_store(golden_store("basic-4.9.4"))


@given(st.integers(-(10**13), 4 * 10**13))
def test_a_datetime_is_the_milliseconds_that_it_was_made_of(when: int) -> None:
    made = EPOCH + timedelta(milliseconds=when)
    assert milliseconds(made) == milliseconds(made.replace(tzinfo=None)) == when
    assert milliseconds(made.astimezone(timezone(timedelta(hours=8))).isoformat()) == when


def test_several_topics_are_scanned_as_one_is(store: rmqfast.MessageStore) -> None:
    each = [store.scan(topic).to_arrow().num_rows for topic in ("fx_q1", "fx_plain")]
    both = store.scan(["fx_q1", "fx_plain"], columns=["topic"]).to_arrow()
    assert [both["topic"].to_pylist().count(topic) for topic in ("fx_q1", "fx_plain")] == each
    assert both.num_rows == sum(each) > max(each) > 0


def test_a_request_names_one_topic() -> None:
    with pytest.raises(ArgumentError, match=r"topic: expected the name of one topic, got \['fx_q1'\]"):
        rmqfast.ScanRequest(topic=["fx_q1"])  # type: ignore[arg-type]


def test_an_end_before_the_start_is_refused_and_an_empty_range_is_not(store: rmqfast.MessageStore) -> None:
    early, late = "2026-11-21T09:00:00", datetime(2026, 11, 22, tzinfo=UTC)
    with pytest.raises(ArgumentError, match=r"end_time: expected start_time, 2026-11-22.*, or later, got 2026-11-21T"):
        store.scan(start_time=late, end_time=early)
    with pytest.raises(ArgumentError, match="end_time: expected start_time, 2, or later, got 1"):
        store.export("/nowhere", start_time=2, end_time=1)
    assert store.scan(start_time=5, end_time=5).to_arrow().num_rows == 0
