"""Messages as they stood at a time, and those between two times."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

import rmqfast
from rmqfast.errors import ArgumentError
from tests import golden_stores
from tests.golden_stores import PathOf
from tests.store.scanned import rows_of

STORE = "basic-4.9.4"


@pytest.mark.parametrize("topic", [None, "fx_q4", ["fx_q1", "fx_q4"]], ids=str)
def test_as_of_is_all_that_was_stored_at_that_time_or_before(
    golden_store: PathOf, topic: str | list[str] | None
) -> None:
    wanted = golden_stores.expected_rows(STORE)
    if topic is not None:
        wanted = [row for row in wanted if row["topic"] in topic]
    times = sorted(row["store_timestamp"] for row in wanted)
    with rmqfast.open_store(golden_store(STORE)) as store:
        for when in (times[0] - 1, times[0], times[len(times) // 2], times[-1], times[-1] + 5000):
            found = [row["physical_offset"] for row in rows_of(store.scan(topic, as_of=when))]
            assert found == [row["physical_offset"] for row in wanted if row["store_timestamp"] <= when]
            assert store.table(topic, as_of=when).count_rows() == len(found)


def test_as_of_takes_the_forms_of_times_and_does_not_lengthen_a_range(golden_store: PathOf) -> None:
    with rmqfast.open_store(golden_store(STORE)) as store:
        times = sorted(row["store_timestamp"] for row in golden_stores.expected_rows(STORE))
        middle = times[len(times) // 2]
        moment = dt.datetime.fromtimestamp(middle / 1000, dt.UTC)
        assert (
            store.scan(as_of=moment).count()
            == store.scan(as_of=middle).count()
            == store.scan(end_time=middle + 1).count()
        )
        assert store.scan(as_of=times[-1], end_time=middle).count() == store.scan(end_time=middle).count()
        assert store.scan(as_of=middle, end_time=times[-1]).count() == store.scan(as_of=middle).count()
        with pytest.raises(ArgumentError, match="as_of: expected"):
            store.scan(as_of="yesterday")


def test_the_difference_of_two_times_is_what_lies_between(golden_store: PathOf) -> None:
    with rmqfast.open_store(golden_store(STORE)) as store:
        times = sorted(row["store_timestamp"] for row in golden_stores.expected_rows(STORE))
        a, b = times[len(times) // 3], times[2 * len(times) // 3]
        found = [row["store_timestamp"] for row in rows_of(store.diff(a, b))]
        assert sorted(found) == [time for time in times if a < time <= b]
        assert store.diff(a, b, "fx_q1", tags="TagA").count() == sum(
            1
            for row in golden_stores.expected_rows(STORE)
            if row["topic"] == "fx_q1" and row["tags"] == "TagA" and a < row["store_timestamp"] <= b
        )
        assert store.diff(a, a).count() == 0
        with pytest.raises(ArgumentError, match="start_time: expected none beside the two times"):
            store.diff(a, b, start_time=a)
        with pytest.raises(ArgumentError, match=f"as_of: expected start_time, {b}, or later"):
            store.scan(start_time=b, as_of=a)
        with pytest.raises(ArgumentError, match=f"b: expected a, {b}, or later, got {a}"):
            store.diff(b, a)


def test_a_time_before_removed_messages_is_refused(tmp_path: Path) -> None:
    clock = iter(range(1_700_000_000_000, 1_700_000_001_000))
    options = rmqfast.AppendOptions(file_size=4096, queue_file_size=2000, index_slots=16, index_entries=400)
    with rmqfast.open_store(tmp_path / "store", mode="a", options=options, clock=lambda: next(clock)) as store:
        for _ in range(60):
            store.append(rmqfast.Message("T", bytes(300)))
        assert store.scan("T", as_of=1_700_000_000_010).count() == 11
        first, *_ = sorted((tmp_path / "store/commitlog").iterdir())
    first.unlink()
    with rmqfast.open_store(tmp_path / "store") as store:
        earliest = store.earliest_time()
        assert earliest is not None
        text = f"as_of: expected {earliest} or later, the time of the first message .*, got {earliest - 1}: older"
        with pytest.raises(ArgumentError, match=text):
            store.scan("T", as_of=earliest - 1)
        assert store.scan("T", as_of=earliest).count() == 1
