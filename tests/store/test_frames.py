"""Frames as people have them are appended: filtered, sorted, with categories, lists and structs, lazy, read before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rmqfast
from rmqfast import AppendOptions, Message, WritableStore
from rmqfast.errors import ArgumentError, ArgumentTypeError, UnknownColumnError
from tests.golden_stores import PathOf

SMALL = AppendOptions(file_size=1 << 20, queue_file_size=2000, index_slots=1000, index_entries=4000, zone_offset_ms=0)
#: What a message brings along; the other columns of a row are given anew.
KEPT = [
    "topic",
    "body",
    "tags",
    "keys",
    "properties",
    "queue_id",
    "flag",
    "born_timestamp",
    "born_host",
    "sys_flag",
    "reconsume_times",
    "prepared_transaction_offset",
]
BASE = pd.DataFrame(
    {
        "topic": ["b", "a", "a"],
        "body": [b"1", b"2", b"3"],
        "tags": ["x", None, "y"],
        "queue_id": [0, 1, 0],
    }
)
ROWS = [("b", b"1", "x", 0), ("a", b"2", None, 1), ("a", b"3", "y", 0)]
ONE = {"topic": ["a"], "body": [b"1"]}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[WritableStore]:
    with rmqfast.open_store(tmp_path / "appended", mode="a", options=SMALL) as opened:
        yield opened


def stored(store: WritableStore, *columns: str) -> list[Any]:
    """The rows of a store, in the order of its log; of one column the values."""
    values = [store.scan(columns=[column]).to_arrow()[column].to_pylist() for column in columns]
    return values[0] if len(values) == 1 else list(zip(*values, strict=True))


def four(store: WritableStore) -> list[Any]:
    return stored(store, "topic", "body", "tags", "queue_id")


FRAMES: dict[str, tuple[Callable[[], Any], list[int]]] = {
    "filtered": (lambda: BASE[BASE.topic == "a"], [1, 2]),
    "sorted": (lambda: BASE.sort_values("body", ascending=False), [2, 1, 0]),
    "sampled": (lambda: BASE.sample(3, random_state=2).sort_index(ascending=False), [2, 1, 0]),
    "concatenated": (lambda: pd.concat([BASE, BASE]), [0, 1, 2, 0, 1, 2]),
    "the heads of groups": (lambda: BASE.groupby("topic").head(1), [0, 1]),
    "without duplicates": (lambda: BASE.drop_duplicates("topic", keep="last"), [0, 2]),
    "an index that is a column": (lambda: BASE.set_index("topic"), [0, 1, 2]),
    "an index of two columns": (lambda: BASE.set_index(["topic", "queue_id"]), [0, 1, 2]),
    "an index of which one has no name": (lambda: BASE.set_index("topic", append=True), [0, 1, 2]),
    "categories": (lambda: BASE.astype({"topic": "category", "tags": "category", "queue_id": "category"}), [0, 1, 2]),
    "pandas' own types": (lambda: BASE.astype({"topic": "string", "tags": "string", "queue_id": "Int64"}), [0, 1, 2]),
    "bytes of categories": (lambda: BASE.astype({"body": "category"}), [0, 1, 2]),
    "Polars": (lambda: pl.DataFrame(BASE), [0, 1, 2]),
    "Categorical": (lambda: pl.DataFrame(BASE).with_columns(pl.col("topic", "tags").cast(pl.Categorical)), [0, 1, 2]),
    "Enum": (lambda: pl.DataFrame(BASE).with_columns(pl.col("tags").cast(pl.Enum(["y", "x"]))), [0, 1, 2]),
    "lazy": (lambda: pl.LazyFrame(pl.DataFrame(BASE)).filter(pl.col("queue_id") == 0), [0, 2]),
    "a reader": (lambda: pa.Table.from_pandas(BASE).to_reader(1), [0, 1, 2]),
    "chunks": (lambda: pa.concat_tables([pa.Table.from_pandas(BASE)] * 2).slice(1, 4), [1, 2, 0, 1]),
    "a data set": (lambda: ds.dataset(pa.Table.from_pandas(BASE)), [0, 1, 2]),
    "a scanner": (lambda: ds.dataset(pa.Table.from_pandas(BASE)).scanner(filter=ds.field("topic") == "a"), [1, 2]),
    "DuckDB": (lambda: duckdb.sql("FROM BASE ORDER BY body DESC"), [2, 1, 0]),
}


@pytest.mark.parametrize(("frame", "rows"), FRAMES.values(), ids=FRAMES)
def test_a_frame_is_appended_row_by_row(frame: Callable[[], Any], rows: list[int], store: WritableStore) -> None:
    assert store.append_many(frame()) == len(rows)
    assert four(store) == [ROWS[row] for row in rows]


@pytest.mark.parametrize("text", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())])
@pytest.mark.parametrize("body", [pa.large_binary(), pa.binary_view(), pa.binary(1), pa.string()])
def test_text_and_bytes_may_have_any_width(text: pa.DataType, body: pa.DataType, store: WritableStore) -> None:
    table = pa.table(
        {
            "topic": pa.array(["b", "a", "a"]).cast(text)
            if text != pa.string_view()
            else pa.array(["b", "a", "a"], text),
            "body": pa.array([b"1", b"2", b"3"], body) if body != pa.string() else pa.array(["1", "2", "3"]),
            "tags": pa.array(["x", None, "y"]).cast(pa.large_string()),
            "queue_id": pa.array([0, 1, 0], pa.uint64()),
        }
    )
    store.append_many(table)
    assert four(store) == ROWS


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([["k1", "k2"], [], None]),
        pa.array([["k1", None, "k2"], [None], None], pa.large_list(pa.large_string())),
        pa.array([["k1", "k2"], [], None], pa.list_view(pa.string_view())),
        pa.array([["k1", "k2"], [None, None], None], pa.list_(pa.string(), 2)),
        pa.array([["k1", "k2"], [], None], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
        pa.array(["k1 k2", "", None]),
    ],
)
def test_keys_may_be_lists_and_an_empty_one_is_none(keys: pa.Array, store: WritableStore) -> None:
    store.append_many(pa.table({"topic": ["t"] * 3, "body": [b"x"] * 3, "keys": keys}))
    assert stored(store, "keys") == ["k1 k2", None, None]
    assert [message.queue_offset for message in store.query("t", "k2")] == [0]


PROPERTIES = {
    "a map": pa.array([[("a", "1"), ("b", "2")], [], None], pa.map_(pa.string(), pa.string())),
    "a map of numbers": pa.array([[("a", 1), ("b", 2)], [], None], pa.map_(pa.string(), pa.int16())),
    "structs": pa.array([{"a": "1", "b": "2"}, {"a": None, "b": None}, None]),
    "structs of numbers": pa.array([{"a": 1, "b": 2}, {"a": None, "b": None}, None]),
    "lists of pairs": pa.array([[["a", "1"], ["b", "2"]], [], None]),
    "lists of structs": pa.array([[{"key": "a", "value": "1"}, {"key": "b", "value": "2"}], [], None]),
}


@pytest.mark.parametrize("properties", PROPERTIES.values(), ids=PROPERTIES)
def test_properties_may_be_maps_structs_and_lists_of_pairs(properties: pa.Array, store: WritableStore) -> None:
    store.append_many(pa.table({"topic": ["t"] * 3, "body": [b"x"] * 3, "properties": properties}))
    assert list(map(dict, stored(store, "properties"))) == [{"a": "1", "b": "2"}, {}, {}]


@pytest.mark.parametrize("empty", [[None, None], [[], []], [{}, {}]])
def test_properties_that_no_row_has_are_none(empty: list[Any], store: WritableStore) -> None:
    store.append_many(pd.DataFrame({"topic": ["t"] * 2, "body": [b"x"] * 2, "properties": empty}))
    assert stored(store, "properties") == [[], []]


def test_numbers_that_come_as_floats_or_decimals_are_integers(store: WritableStore) -> None:
    both = pd.concat([BASE, BASE.drop(columns="queue_id")])
    assert both["queue_id"].dtype == "float64"
    store.append_many(both)
    assert [row[3] for row in four(store)] == [0, 1, 0, 0, 0, 0]
    sums: Any = duckdb.sql("SELECT topic, '7'::BLOB AS body, sum(queue_id)::HUGEINT AS queue_id FROM BASE GROUP BY ALL")
    store.append_many(sums.order("topic"))
    assert four(store)[6:] == [("a", b"7", None, 1), ("b", b"7", None, 0)]


def test_dates_are_times(store: WritableStore) -> None:
    store.append_many(pa.table(ONE | {"born_timestamp": pa.array([20_000], pa.date32())}))
    assert stored(store, "born_timestamp")[0].timestamp() == 20_000 * 86_400


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "half a queue": (
        pa.table(ONE | {"queue_id": [0.5]}),
        ArgumentError,
        "queue_id: expected integers of 64 bits, got 0.5",
    ),
    "no number": (
        pa.table(ONE | {"queue_id": [float("nan")]}),
        ArgumentError,
        "queue_id: expected integers .* got NaN",
    ),
    "too large": (
        pa.table(ONE | {"flag": pa.array([2**64 - 1], pa.uint64())}),
        ArgumentError,
        "flag: expected integers",
    ),
    "numbers as keys": (pa.table(ONE | {"keys": [[1, 2]]}), ArgumentError, "keys: expected a column of text or bytes"),
    "text as properties": (
        pa.table(ONE | {"properties": ["a=1"]}),
        ArgumentError,
        "properties: expected a column of maps",
    ),
    "three": (
        pa.table(ONE | {"properties": [[["a", "b", "c"]]]}),
        ArgumentError,
        "properties: expected lists of pairs",
    ),
    "an index": (
        BASE.set_index(pd.Index([7, 8, 9], name="order")),
        UnknownColumnError,
        r"unknown column 'order'.*index of the frame: write frame.reset_index\(drop=True\)",
    ),
    "almost an index": (pa.table(ONE | {"__index_level_x__": [1]}), UnknownColumnError, "__index_level_x__"),
    "a dict of columns": (ONE, ArgumentTypeError, r"got a dict: write pyarrow.table\(columns\)"),
    "dicts": (
        [{"topic": "a"}],
        ArgumentTypeError,
        r"message 0: expected a Message, got a dict: write Message\(\*\*row\)",
    ),
    "batches": ([pa.record_batch(ONE)], ArgumentTypeError, r"got a RecordBatch: write pyarrow.Table.from_batches"),
    "one message": (Message("t", b"x"), ArgumentTypeError, r"expected several, got one Message: write \[message\]"),
    "a number": (7, ArgumentTypeError, "expected messages, or what has __arrow_c_stream__ .*, got a int"),
}


@pytest.mark.parametrize(("frame", "error", "text"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_appended_is_told_with_what_to_write(
    frame: Any, error: type[Exception], text: str, store: WritableStore
) -> None:
    with pytest.raises(error, match=text):
        store.append_many(frame)
    assert store.topics() == {}


READ: dict[str, Callable[[rmqfast.Scan], Any]] = {
    "scan": lambda scan: scan,
    "arrow": lambda scan: scan.to_arrow(),
    "pandas": lambda scan: scan.to_pandas(),
    "polars": lambda scan: scan.to_polars(),
    "pandas, dicts": lambda scan: scan.to_arrow().to_pandas(maps_as_pydicts="strict"),
    "pandas of Arrow": lambda scan: scan.to_arrow().to_pandas(types_mapper=pd.ArrowDtype),
    "duckdb": lambda scan: duckdb.from_arrow(scan.to_arrow()),
}


def kept(store: rmqfast.MessageStore, **arguments: Any) -> list[dict[str, Any]]:
    rows: Any = store.scan(columns=KEPT, **arguments).to_arrow().to_pylist()
    compression: Any = 0x1 | 0x700
    return [row | {"properties": dict(row["properties"]), "sys_flag": row["sys_flag"] & ~compression} for row in rows]


@pytest.mark.parametrize("read", READ.values(), ids=READ)
@pytest.mark.parametrize("topic", ["fx_q1", "fx_plain"])
def test_what_was_read_can_be_appended_to_another_store(
    read: Callable[[rmqfast.Scan], Any], topic: str, golden_store: PathOf, store: WritableStore
) -> None:
    with rmqfast.open_store(golden_store("basic-4.9.4")) as source:
        store.append_many(read(source.scan(topic)))
        assert kept(store) == kept(source, topic=topic)


texts = st.text(st.characters(codec="utf-8", exclude_characters="\x01\x02 \x00"), min_size=1, max_size=6)
rows = st.fixed_dictionaries(
    {
        "topic": st.sampled_from(["orders", "clicks"]),
        "body": st.binary(max_size=20),
        "tags": st.none() | st.sampled_from(["x", "y"]),
        "keys": st.none() | st.lists(texts, min_size=1, max_size=3),
        "properties": st.dictionaries(
            texts.filter(lambda name: name not in {"TAGS", "KEYS", "DELAY", "UNIQ_KEY"}), texts
        ),
        "queue_id": st.integers(0, 3),
        "flag": st.integers(-(2**31), 2**31 - 1),
    }
)
CHANGES: list[Callable[[pd.DataFrame], Any]] = [
    lambda frame: frame,
    lambda frame: frame[frame["topic"] == "orders"],
    lambda frame: frame.sort_values(["topic", "flag"]),
    lambda frame: pd.concat([frame, frame]),
    lambda frame: frame.astype({"topic": "category", "tags": "category"}),
    lambda frame: frame.set_index("queue_id"),
    lambda frame: frame.assign(properties=frame["properties"].map(lambda pairs: list(pairs.items()))),
    lambda frame: pl.DataFrame(frame.drop(columns="properties")).with_columns(pl.col("topic").cast(pl.Categorical)),
    lambda frame: pl.DataFrame(frame.drop(columns="properties")).lazy(),
]


@settings(max_examples=25, deadline=None)
@given(st.lists(rows, min_size=1, max_size=12), st.sampled_from(CHANGES), st.sampled_from(list(READ.values())))
def test_any_frame_goes_through_two_stores_unchanged(
    given_rows: list[dict[str, Any]], change: Callable[[pd.DataFrame], Any], read: Callable[[rmqfast.Scan], Any]
) -> None:
    frame = change(pd.DataFrame(given_rows))
    with TemporaryDirectory() as directory:
        first = rmqfast.open_store(Path(directory) / "first", mode="a", options=SMALL)
        second = rmqfast.open_store(Path(directory) / "second", mode="a", options=SMALL)
        with first, second:
            count = first.append_many(frame)
            assert second.append_many(read(first.scan())) == count
            assert kept(second) == kept(first)
            assert sorted(map(str, stored(first, "body"))) == sorted(map(str, _column(frame, "body")))


def _column(frame: Any, name: str) -> list[Any]:
    frame = frame.collect() if isinstance(frame, pl.LazyFrame) else frame
    return list(frame[name])
