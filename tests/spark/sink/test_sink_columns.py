"""A schema is looked at before anything is sent: what is refused names column, expected and got."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rmqfast._native import TopicSink
from rmqfast.errors import RmqError
from rmqfast.spark.schema import row_schema
from rmqfast.spark.sink import sink_of

pytest.importorskip("pyspark.sql.types")
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

TEXT, INT, DOUBLE = StringType(), IntegerType(), DoubleType()
BODY = [("body", BinaryType())]
REFUSED: dict[str, tuple[list[tuple[str, DataType]], str]] = {
    "type of body": ([("body", INT)], "schema: column body: expected binary or string, got int"),
    "type of tags": ([*BODY, ("tags", INT)], "schema: column tags: expected string, got int"),
    "type of keys": (
        [*BODY, ("keys", ArrayType(INT))],
        "schema: column keys: expected string or array<string>, got array<int>",
    ),
    "type of properties": (
        [*BODY, ("properties", MapType(TEXT, INT))],
        "schema: column properties: expected map<string,string>, got map<string,int>",
    ),
    "type of queue_id": (
        [*BODY, ("queue_id", DOUBLE)],
        "schema: column queue_id: expected int or bigint or smallint or tinyint, got double",
    ),
    "type of delay_level": ([*BODY, ("delay_level", TEXT)], "schema: column delay_level: expected int or bigint"),
    "unknown": ([*BODY, ("tag", TEXT)], "unknown column 'tag'; did you mean tags? the columns of a sink are body"),
    "no column like it": ([*BODY, ("xyz", DOUBLE)], "unknown column 'xyz'; the columns of a sink are body, tags"),
    "twice": ([*BODY, *BODY], "schema: column body: expected once, got 2 of that name"),
    "no body": ([("tags", TEXT)], "schema: column body: expected binary or string, got no such column, only tags"),
    "nothing": ([], "schema: column body: expected binary or string, got no such column, only none"),
    "a type that the row has not": ([*BODY, ("topic", INT)], "schema: column topic: expected string, got int"),
}


def schema_of(fields: Sequence[tuple[str, DataType]]) -> StructType:
    schema = StructType()
    for name, kind in fields:
        schema = schema.add(name, kind)
    return schema


def sink_columns(schema: StructType, topic: str | None) -> Sequence[str]:
    options = {"nameServer": "10.0.0.1:9876"} | ({} if topic is None else {"topic": topic})
    return sink_of(options, schema).columns


@pytest.mark.parametrize(("fields", "text"), REFUSED.values(), ids=REFUSED)
def test_a_schema_that_cannot_be_sent_says_which_column(fields: list[tuple[str, DataType]], text: str) -> None:
    with pytest.raises(RmqError) as caught:
        sink_columns(schema_of(fields), "orders")
    assert text in str(caught.value)


def test_a_topic_is_needed_somewhere() -> None:
    with pytest.raises(RmqError, match="expected the option topic or a column topic, got neither"):
        sink_columns(schema_of(BODY), None)
    assert sink_columns(schema_of([*BODY, ("topic", TEXT)]), None) == ["body", "topic"]


def test_the_option_wins_over_the_column_topic() -> None:
    assert sink_columns(schema_of([*BODY, ("topic", TEXT)]), "orders") == ["body"]


def test_the_row_of_a_read_is_taken_without_what_brokers_give_anew() -> None:
    read = sink_columns(row_schema(), "copy")
    assert read == ["broker_name", "queue_id", "tags", "keys", "body", "properties", "flag"]
    more = schema_of([*BODY, ("store_timestamp", TimestampType()), ("queue_offset", LongType())])
    assert sink_columns(more, "copy") == ["body"]


def test_every_column_of_every_type_is_taken() -> None:
    kinds = {
        "body": TEXT,
        "keys": ArrayType(TEXT),
        "properties": MapType(TEXT, TEXT),
        "queue_id": INT,
        "delay_level": LongType(),
        "flag": INT,
    }
    names = [name for name, _ in TopicSink.column_types()]
    fields: list[tuple[str, DataType]] = [(name, kinds.get(name, TEXT)) for name in names]
    assert sink_columns(schema_of(fields), None) == names
