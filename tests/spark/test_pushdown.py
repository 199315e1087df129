"""Filters that Spark pushes down: gone from the plan if a scan does them exactly, and the same rows in any case."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from rmqfast import ScanRequest
from rmqfast.spark.filters import narrowed_store
from rmqfast.spark.partitions import StoreRead
from rmqfast.spark.reader import store_read
from tests.golden_stores import PathOf

from .conditions import PARTLY
from .conftest import Matching
from .in_process import Row, partition_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT = datetime(2026, 1, 1, tzinfo=UTC)
MS = int(AT.timestamp() * 1000)
BETWEEN = AT + timedelta(microseconds=300)
#: Filters as PySpark hands them to a source, and what they mean.
TAKEN: dict[str, tuple[list[Filter], Callable[[Row], bool]]] = {
    "a tag": ([IsNotNull(("tags",)), EqualTo(("tags",), "TagA")], lambda row: row["tags"] == "TagA"),
    "tags of one hash": ([In(("tags",), ("Aa", "TagA", None))], lambda row: row["tags"] in {"Aa", "TagA"}),
    "a topic": ([EqualTo(("topic",), "fx_q4")], lambda row: row["topic"] == "fx_q4"),
    "a topic that there is not": ([EqualTo(("topic",), "no such topic")], lambda row: False),
    "a place": (
        [
            EqualTo(("topic",), "fx_q4"),
            EqualTo(("tags",), "Aa"),
            In(("queue_id",), (0, 2)),
            GreaterThanOrEqual(("queue_offset",), 5),
        ],
        lambda row: (
            (row["topic"], row["tags"]) == ("fx_q4", "Aa") and row["queue_id"] in {0, 2} and row["queue_offset"] >= 5
        ),
    ),
    "offsets of a queue": (
        [
            EqualTo(("queue_id",), 1),
            GreaterThanOrEqual(("queue_offset",), 10),
            LessThanOrEqual(("queue_offset",), 20),
        ],
        lambda row: row["queue_id"] == 1 and 10 <= row["queue_offset"] <= 20,
    ),
    "offsets": (
        [LessThan(("queue_offset",), 7), GreaterThan(("queue_offset",), 3)],
        lambda row: 3 < row["queue_offset"] < 7,
    ),
    "an offset": ([EqualTo(("queue_offset",), 5)], lambda row: row["queue_offset"] == 5),
    "no queue": ([EqualTo(("queue_id",), 1), EqualTo(("queue_id",), 2)], lambda row: False),
    "what no row lacks": ([IsNotNull(("physical_offset",))], lambda row: True),
}


def load(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    return spark.read.format("rocketmq").options(storePath=str(path), **options).load()


def rows(frame: DataFrame, condition: str) -> list[int]:
    return sorted(row[0] for row in frame.where(condition).select("physical_offset").collect())


# the columnar source is asked for all of them; here each starts workers
@pytest.mark.spark
@pytest.mark.parametrize(
    "condition",
    [
        "topic = 'fx_q4' AND tags = 'Aa' AND queue_id IN (0, 2) AND queue_offset >= 5",
        "queue_id = 1 AND queue_id = 2",
        "tags IS NULL",
        "length(body) > 100 AND topic = 'fx_q1'",
    ],
)
def test_a_filter_is_gone_from_the_plan_where_a_scan_does_it_exactly(
    spark: SparkSession,
    golden_store: PathOf,
    matching: Matching,
    capsys: pytest.CaptureFixture[str],
    condition: str,
) -> None:
    frame = load(spark, golden_store("basic-4.9.4"), pushdown="true").where(condition).select("physical_offset")
    frame.explain()
    assert (" Filter " in capsys.readouterr().out) == (condition in PARTLY)
    assert sorted(row[0] for row in frame.collect()) == matching(condition)


@pytest.mark.parametrize(("filters", "means"), TAKEN.values(), ids=TAKEN)
def test_filters_that_are_taken_leave_the_rows_that_they_mean(
    golden_store: PathOf, filters: list[Filter], means: Callable[[Row], bool]
) -> None:
    whole = store_read(golden_store("basic-4.9.4"), None, columns=["topic", "queue_id", "queue_offset", "tags"])
    taken = narrowed_store(whole, filters)
    assert taken.rest == []
    wanted = [row for row in partition_rows(whole) if means(row)]
    assert ([] if taken.is_empty else partition_rows(taken.read)) == wanted


@pytest.mark.spark
def test_pushed_filters_and_options_both_hold(spark: SparkSession, golden_store: PathOf) -> None:
    options = {"topic": "fx_q4", "queueIds": "0,1", "endingOffsets": '{"fx_q4":{"*":{"0":50}}}'}
    condition = "queue_id IN (0, 3) AND queue_offset > 9 AND tags = 'Aa'"
    narrowed = rows(load(spark, golden_store("basic-4.9.4"), pushdown="true", **options), condition)
    assert narrowed == rows(load(spark, golden_store("basic-4.9.4"), **options), condition)
    assert narrowed


@pytest.mark.parametrize(
    ("kind", "time", "start", "end"),
    [
        (EqualTo, AT, MS, MS + 1),
        (GreaterThanOrEqual, AT, MS, None),
        (GreaterThan, AT, MS + 1, None),
        (LessThan, AT, None, MS),
        (LessThanOrEqual, AT, None, MS + 1),
        (EqualTo, BETWEEN, MS + 1, MS + 1),
        (GreaterThanOrEqual, BETWEEN, MS + 1, None),
        (GreaterThan, BETWEEN, MS + 1, None),
        (LessThan, BETWEEN, None, MS + 1),
        (LessThanOrEqual, BETWEEN, None, MS + 1),
    ],
)
def test_times_leave_neither_too_much_nor_too_little(
    kind: Callable[[tuple[str], datetime], Filter], time: datetime, start: int | None, end: int | None
) -> None:
    taken = narrowed_store(StoreRead(path="/store", request=ScanRequest()), [kind(("store_timestamp",), time)])
    assert taken.rest == []
    assert (taken.read.request.start_time, taken.read.request.end_time) == (start, end)


@pytest.mark.parametrize(
    "condition",
    [
        EqualTo(("tags",), "A || B"),
        EqualTo(("tags",), "*"),
        EqualTo(("tags",), ""),
        EqualTo(("tags",), " A"),
        In(("tags",), ("A", "B|")),
        EqualTo(("store_timestamp",), AT.replace(tzinfo=None)),
        EqualTo(("topic", "x"), "a"),
        GreaterThan(("queue_offset",), (1 << 63) - 1),
        GreaterThan(("queue_id",), 1),
        IsNull(("topic",)),
        IsNotNull(("tags",)),
        IsNotNull(("body",)),
        Not(EqualTo(("tags",), "A")),
    ],
)
def test_what_is_not_exact_is_left_to_spark(condition: Any) -> None:
    read = StoreRead(path="/store", request=ScanRequest())
    assert narrowed_store(read, [condition]) == (read, [condition], False)


def test_a_second_filter_on_tags_is_left_to_spark() -> None:
    second = EqualTo(("tags",), "B")
    read = StoreRead(path="/store", request=ScanRequest())
    taken = narrowed_store(read, [IsNotNull(("tags",)), EqualTo(("tags",), "A"), second])
    assert taken.rest == [second]
    assert taken.read.request.tags == "A"


def test_offsets_by_queue_of_an_option_are_not_overruled() -> None:
    read = StoreRead(path="/store", request=ScanRequest(topic="t", start_offset={0: 5}))
    condition = GreaterThan(("queue_offset",), 7)
    assert narrowed_store(read, [condition]) == (read, [condition], False)
