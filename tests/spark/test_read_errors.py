"""What a user gets to read who asks `read_store` for something that is not there: at once, in the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from rmqfast import errors
from rmqfast.spark import read_store
from tests.golden_stores import PathOf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

REFUSED: dict[str, tuple[Mapping[str, Any], type[Exception], str]] = {
    "topic": ({"topic": "fx_q"}, errors.UnknownTopicError, "unknown topic 'fx_q'; did you mean fx_q1"),
    "column": ({"columns": ["bdy"]}, errors.UnknownColumnError, "unknown column 'bdy'"),
    "no column": ({"columns": []}, errors.ArgumentError, "columns: expected at least one, got none"),
    "twice": ({"columns": ["tags", "tags"]}, errors.ArgumentError, "columns: expected each once"),
    "tags": ({"tags": "||"}, errors.ExpressionError, "||"),
    "sql": ({"sql": "a >"}, errors.ExpressionError, "found the end at position 3"),
    "engine": ({"engine": "row"}, errors.ArgumentError, "engine: expected 'auto', 'columnar', 'arrow', 'pandas', got"),
    "io": ({"io": "aio"}, errors.ArgumentError, "io: expected 'pread' or 'mmap', got 'aio'"),
    "on_damage": ({"on_damage": "skip"}, errors.ArgumentError, "on_damage: expected 'fail' or 'warn', got 'skip'"),
    "partitions": ({"min_partitions": 0}, errors.ArgumentError, "min_partitions: expected 1 to 1000000, got 0"),
    "bytes": ({"partition_bytes": 0}, errors.ArgumentError, "partition_bytes: expected 1 to"),
    "bodies": ({"max_body_bytes": 0}, errors.ArgumentError, "max_body_bytes: expected 1 to"),
    "time": ({"start_time": "noon"}, errors.ArgumentError, "start_time: expected ISO 8601"),
    "path": ({"path": "hdfs://nn/store"}, errors.ArgumentError, "a mounted or copied directory"),
    "store": ({"path": "/nowhere/store"}, errors.StoreNotFoundError, "/nowhere/store"),
}


@pytest.mark.parametrize(("arguments", "error", "text"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_there_is_refused_by_the_call(
    spark: SparkSession, golden_store: PathOf, arguments: Mapping[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as caught:
        read_store(spark, **{"path": golden_store("basic-4.9.4"), "topic": "fx_q1", **arguments})
    assert text in str(caught.value)
