"""Frames that hold Arrow's own columns: Spark takes them without looking at a cell."""

from __future__ import annotations

import pyarrow as pa
import pytest

import rmqfast
from rmqfast.spark.frames import arrow_frame
from tests.golden_stores import PathOf


def test_every_column_goes_through_a_frame_as_the_very_same_bytes(golden_store: PathOf) -> None:
    with rmqfast.open_store(golden_store("basic-4.9.4")) as store:
        batch = next(iter(store.scan(None).batches()))
    frame = arrow_frame(batch)
    for column, name in zip(batch.columns, batch.schema.names, strict=True):
        back = pa.Array.from_pandas(frame[name], type=column.type)
        assert back.equals(column)
        assert [b and b.address for b in back.buffers()] == [b and b.address for b in column.buffers()]


def test_a_function_that_converts_maps_is_not_called() -> None:
    pairs = pa.array([[("KEYS", "k")], None], pa.map_(pa.string(), pa.string()))
    series = arrow_frame(pa.record_batch({"properties": pairs}))["properties"]
    assert pa.Array.from_pandas(series.apply(pytest.fail), type=pairs.type).equals(pairs)
