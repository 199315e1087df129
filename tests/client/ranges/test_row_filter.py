"""Which rows of a batch have a key: the rule of the store, row by row, is the oracle. No broker is needed for this."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqfast.client.instance import ClientConfig
from rmqfast.client.ranges import RangeRequest
from rmqfast.client.ranges.range_rows import RowFilter, rows_with_key
from rmqfast.errors import ArgumentError

WORDS = st.text(alphabet="ab .*é\x01", max_size=5)
IDS = st.sampled_from(["a", "b", "ab", "", "é"])
ROWS = st.lists(st.tuples(st.none() | WORDS, IDS, IDS), max_size=20)


def batch_of(rows: list[tuple[str | None, str, str]]) -> Any:
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    names = ("keys", "msg_id", "offset_msg_id")
    return pa.RecordBatch.from_pydict(
        {n: pa.array(column, pa.string()) for n, column in zip(names, columns, strict=True)}
    )


def has_key(row: tuple[str | None, str, str], wanted: list[str]) -> bool:
    stored, msg_id, offset_msg_id = row
    unique = [] if msg_id == offset_msg_id else [msg_id]
    return any(word in wanted for word in [*unique, *([] if stored is None else stored.split(" "))])


@given(ROWS, st.lists(WORDS, max_size=4))
def test_rows_with_a_key_are_those_that_have_it_as_a_word_or_as_the_id_of_their_producer(
    rows: list[tuple[str | None, str, str]], wanted: list[str]
) -> None:
    found = rows_with_key(batch_of(rows), pa.array(wanted, pa.string())).to_pylist()
    assert found == [at for at, row in enumerate(rows) if has_key(row, wanted)]


def request(**changes: Any) -> RangeRequest:
    return RangeRequest(config=ClientConfig(name_server="127.0.0.1:1"), topic="orders", group="tests", **changes)


def test_times_and_keys_both_hold_and_other_columns_come_along() -> None:
    rows = RowFilter(request(keys=["a"], start_time=2, end_time=4))
    assert set(rows.columns) == {"store_timestamp", "keys", "msg_id", "offset_msg_id"}
    batch = pa.RecordBatch.from_pydict(
        {
            "store_timestamp": pa.array([1, 2, 3, 4, 3], pa.timestamp("ms")),
            "keys": ["a", "b a", "b", "a", None],
            "msg_id": ["1", "2", "3", "4", "a"],
            "offset_msg_id": ["", "", "", "", ""],
            "properties": pa.array([[("n", str(n))] for n in range(5)], pa.map_(pa.string(), pa.string())),
        }
    )
    assert rows.kept(batch).column("properties").to_pylist() == [[("n", "1")], [("n", "4")]]


def test_one_text_is_no_sequence_of_keys() -> None:
    with pytest.raises(ArgumentError, match="keys: expected a sequence, got the one value 'a'"):
        request(keys="a")
    assert request(keys=["a", "b"]).keys == ("a", "b")
