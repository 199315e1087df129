"""The data source `rocketmq`, as its users meet it, against the golden stores and `MessageStore.scan`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rmqfast
from rmqfast.store import COLUMNS
from tests import golden_stores
from tests.golden_stores import PathOf

from .in_process import column, source_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = Callable[["DataFrame"], list[golden_stores.Line]]
CHOSEN: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "tags": ({"tags": "Aa || BB"}, {"tags": "Aa || BB"}),
    "subExpression": ({"subExpression": "TagB"}, {"tags": "TagB"}),
    "sql": ({"sql": "a > 10"}, {"sql": "a > 10"}),
    "keys": ({"keys": "k22, order-13"}, {"keys": ["k22", "order-13"]}),
    "queueIds": ({"queueIds": "0,2"}, {"queue_ids": [0, 2]}),
    "offsets": (
        {
            "startingOffsets": json.dumps({"fx_q4": {"*": {"0": 10, "1": -1, "2": -2}}}),
            "endingOffsets": json.dumps({"fx_q4": {"*": {"0": 20, "3": 5, "2": -1}}}),
        },
        {"start_offset": {0: 10, 1: 102}, "end_offset": {0: 20, 3: 5}},
    ),
    "crc": ({"verifyCrc": "true", "tags": "Aa"}, {"verify_crc": True, "tags": "Aa"}),
    "mmap": ({"io": "mmap", "tags": "Aa"}, {"tags": "Aa"}),
}


def load(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    return spark.read.format("rocketmq").options(storePath=str(path), **options).load()


@pytest.mark.spark
def test_a_golden_store_gives_the_rows_that_rocketmq_gives(
    spark: SparkSession, golden_store: PathOf, rows_of: Rows
) -> None:
    frame = load(spark, golden_store("basic-4.9.4"))
    assert list(golden_stores.differences(rows_of(frame), golden_stores.expected_rows("basic-4.9.4"))) == []
    assert frame.columns == list(COLUMNS)


@pytest.mark.parametrize(("options", "arguments"), CHOSEN.values(), ids=CHOSEN)
def test_options_choose_what_a_scan_chooses(
    golden_store: PathOf, options: dict[str, str], arguments: Mapping[str, Any]
) -> None:
    path = golden_store("basic-4.9.4")
    with rmqfast.open_store(path) as store:
        wanted = store.scan("fx_q4", columns=["physical_offset"], **arguments).to_arrow().column(0).to_pylist()
    rows = source_rows({"storePath": str(path), "topic": "fx_q4", "columns": "physical_offset", **options})
    assert sorted(column(rows, "physical_offset")) == sorted(wanted)
    assert 0 < len(wanted) < 451


def test_the_option_columns_prunes_in_its_order(golden_store: PathOf) -> None:
    options = {"storePath": str(golden_store("basic-4.9.4")), "topic": "fx_q1", "columns": "tags, queue_offset"}
    (row,) = [row for row in source_rows(options) if row["queue_offset"] == 1]
    assert list(row.items()) == [("tags", "BBBB"), ("queue_offset", 1)]


@pytest.mark.spark
def test_a_schema_of_the_users_prunes_in_its_order(spark: SparkSession, golden_store: PathOf) -> None:
    reader = spark.read.format("rocketmq").option("topic", "fx_q1")
    frame = reader.schema("body binary, queue_offset bigint, properties map<string,string>").load(
        str(golden_store("basic-4.9.4"))
    )
    ((body, offset, properties),) = frame.where("queue_offset = 1").collect()
    assert (bytes(body)[:7], offset, properties["color"]) == (b"tag tag", 1, "green")


@pytest.mark.spark
def test_sql_reads_a_store_as_a_view(spark: SparkSession, golden_store: PathOf) -> None:
    path = golden_store("basic-4.9.4")
    spark.sql(f"CREATE OR REPLACE TEMP VIEW fx USING rocketmq OPTIONS (storePath '{path}', topic 'fx_q1')")
    assert spark.sql("SELECT count(*) FROM fx WHERE tags = 'TagA'").first() == (105,)


def test_a_store_without_any_message_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "consumequeue").mkdir()
    assert source_rows({"storePath": str(tmp_path)}) == []


@pytest.mark.spark
def test_pushdown_gives_the_same_rows_where_spark_pushes_nothing(spark: SparkSession, golden_store: PathOf) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    try:
        frame = load(spark, golden_store("basic-4.9.4"), topic="fx_q1", pushdown="true")
        assert frame.where("tags = 'TagA'").count() == 105
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
