"""Rows that go through Arrow's PyCapsule interface, both ways, and what is none."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rmqfast
from tests.golden_stores import PathOf

ROWS = pa.table({"topic": ["orders", "orders"], "body": [b"one", b"two"]})


def failing_reader() -> pa.RecordBatchReader:
    """A stream whose first batch cannot be had."""

    def fail(_: object) -> pa.RecordBatch:
        raise ValueError("no more of it")

    return pa.RecordBatchReader.from_batches(ROWS.schema, map(fail, [0]))


class Offers:
    """Whatever it is given, under the name of an array."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __arrow_c_array__(self, requested_schema: object | None = None) -> Any:
        return self._array.__arrow_c_array__(requested_schema)


def stored(path: Path) -> list[Any]:
    with rmqfast.open_store(path) as store:
        bodies: list[Any] = store.scan("orders", columns=["body"]).to_arrow()["body"].to_pylist()
    return bodies


@pytest.mark.parametrize(
    "rows",
    [ROWS, ROWS.to_batches()[0], Offers(ROWS.to_batches()[0]), ROWS.to_reader()],
    ids=["table", "batch", "array alone", "reader"],
)
def test_rows_of_each_kind_are_appended(rows: Any, tmp_path: Path) -> None:
    with rmqfast.open_store(tmp_path, mode="a") as store:
        assert store.append_many(rows) == 2
    assert stored(tmp_path) == [b"one", b"two"]


def test_a_batch_outlives_what_made_it(golden_store: PathOf) -> None:
    with rmqfast.open_store(golden_store("basic-4.9.4")) as store:
        batches = list(store.scan("fx_plain", columns=["body", "properties"]).batches())
    gc.collect()
    table = pa.Table.from_batches(batches)
    table.validate(full=True)
    assert table.num_rows == 120


def test_a_capsule_is_taken_once(golden_store: PathOf) -> None:
    with rmqfast.open_store(golden_store("basic-4.9.4")) as store:
        capsule = store.scan("fx_plain", columns=["body"]).__arrow_c_stream__()

    class Twice:
        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            return capsule

    assert pa.RecordBatchReader.from_stream(Twice()).schema.names == ["body"]
    with pytest.raises(ValueError, match="released"):
        pa.RecordBatchReader.from_stream(Twice())


@pytest.mark.parametrize("anew", [(), (0,), (1,)], ids=["both", "the array", "the schema"])
def test_rows_that_were_taken_are_not_taken_again(anew: tuple[int, ...], tmp_path: Path) -> None:
    batch = ROWS.to_batches()[0]
    capsules: list[object] = list(batch.__arrow_c_array__())

    class Same:
        def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
            return capsules[0], capsules[1]

    with rmqfast.open_store(tmp_path, mode="a") as store:
        assert store.append_many(Same()) == 2
        for index in anew:
            capsules[index] = batch.__arrow_c_array__()[index]
        with pytest.raises(ValueError, match="taken before"):
            store.append_many(Same())
    assert len(stored(tmp_path)) == 2


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (Offers(pa.array([1, 2])), "a struct array, got one of Int64"),
        (Offers(pa.array([{"body": b"one"}, None])), "got 1 that are null"),
        (pa.chunked_array([pa.array([{"body": b"one"}, None])]), "got 1 that are null"),
        (failing_reader(), "no more of it"),
        (Offers(ROWS.schema), "__arrow_c_array__"),
    ],
    ids=["no struct", "a null row", "a null row of a stream", "a stream that fails", "no array"],
)
def test_what_is_no_rows_is_refused(rows: Any, said: str, tmp_path: Path) -> None:
    with (
        rmqfast.open_store(tmp_path, mode="a") as store,
        pytest.raises((TypeError, ValueError, AttributeError), match=said),
    ):
        store.append_many(rows)
    assert not list(tmp_path.glob("consumequeue/*"))
