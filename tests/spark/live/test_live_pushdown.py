"""Filters that Spark pushes down to a live topic: gone from the plan if they are done exactly, and the same rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from rmqfast._native import TopicRead
from rmqfast.errors import DataLossError
from rmqfast.spark.filters import rest_of
from tests.spark.in_process import Row, topic_rows
from tests.spark.live.test_equal_rows import by_place, rows_of, stored
from tests.spark.live.test_live_source import load
from tests.spark.live.topics import MESSAGES, LiveCluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EACH = MESSAGES // 8
COLUMNS = ("broker_name", "queue_id", "queue_offset", "tags", "store_timestamp")
#: Filters, and what they mean.
TAKEN: dict[str, tuple[list[Filter], Callable[[Row], bool]]] = {
    "a broker": ([EqualTo(("broker_name",), "broker-b")], lambda row: row["broker_name"] == "broker-b"),
    "brokers": ([In(("broker_name",), ("broker-a", "x", None))], lambda row: row["broker_name"] == "broker-a"),
    "a queue": ([EqualTo(("queue_id",), 2)], lambda row: row["queue_id"] == 2),
    "queues": (
        [In(("queue_id",), (0, 2, 77)), In(("queue_id",), (2, 3, 77))],
        lambda row: row["queue_id"] == 2,
    ),
    "no queue": ([EqualTo(("queue_id",), 1), EqualTo(("queue_id",), 2)], lambda row: False),
    "a queue that there is not": ([EqualTo(("queue_id",), 99)], lambda row: False),
    "an offset": ([EqualTo(("queue_offset",), 7)], lambda row: row["queue_offset"] == 7),
    "offsets": (
        [GreaterThan(("queue_offset",), 3), LessThanOrEqual(("queue_offset",), 60), LessThan(("queue_offset",), 90)],
        lambda row: 3 < row["queue_offset"] <= 60,
    ),
    "offsets beyond both ends": (
        [GreaterThanOrEqual(("queue_offset",), -5), LessThan(("queue_offset",), 1 << 62)],
        lambda row: True,
    ),
    "offsets behind the end": ([GreaterThan(("queue_offset",), 10_000)], lambda row: False),
    "offsets that exclude each other": (
        [LessThan(("queue_offset",), 5), GreaterThan(("queue_offset",), 9)],
        lambda row: False,
    ),
    "a tag": ([IsNotNull(("tags",)), EqualTo(("tags",), "Aa")], lambda row: row["tags"] == "Aa"),
    "no tag": ([In(("tags",), (None,))], lambda row: False),
    "the topic": ([EqualTo(("topic",), "orders"), IsNotNull(("broker_name",))], lambda row: True),
    "another topic": ([EqualTo(("topic",), "bills")], lambda row: False),
    "topics": ([In(("topic",), ("bills", "orders", None))], lambda row: True),
    "other topics": ([In(("topic",), ("bills", "x"))], lambda row: False),
    "all at once": (
        [
            EqualTo(("broker_name",), "broker-a"),
            In(("queue_id",), (1, 3)),
            LessThan(("queue_offset",), 40),
            EqualTo(("tags",), "paid"),
        ],
        lambda row: (
            (row["broker_name"], row["tags"]) == ("broker-a", "paid")
            and row["queue_id"] in {1, 3}
            and row["queue_offset"] < 40
        ),
    ),
}


def topic_read(name_server: str = "127.0.0.1:1", topic: str = "orders", **options: str) -> TopicRead:
    return TopicRead("topic batch", {"nameServer": name_server, "topic": topic, **options}, COLUMNS)


def narrowed(read: TopicRead, filters: list[Filter]) -> tuple[TopicRead, list[Filter]]:
    """What filters leave of a read, and those that stay Spark's."""
    left = read

    def take(asked: list[tuple[str, str, list[object]]]) -> list[bool]:
        nonlocal left
        left, is_taken = read.take(asked)
        return is_taken

    rest = rest_of(take, filters)
    return left, rest


def rows(read: TopicRead) -> list[Row]:
    return by_place(topic_rows(read))


@pytest.mark.parametrize(("filters", "means"), TAKEN.values(), ids=TAKEN)
def test_filters_that_are_taken_leave_the_rows_that_they_mean(
    live_cluster: LiveCluster, filters: list[Filter], means: Callable[[Row], bool]
) -> None:
    whole = topic_read(live_cluster.name_server)
    left, rest = narrowed(whole, filters)
    assert rest == []
    assert rows(left) == [row for row in rows(whole) if means(row)]


def test_a_light_queue_keeps_offsets_of_its_own_so_places_in_it_are_left_to_spark() -> None:
    places: list[Filter] = [EqualTo(("queue_id",), 1), LessThan(("queue_offset",), 5), EqualTo(("topic",), "orders")]
    _, rest = narrowed(topic_read(topic="%LMQ%orders"), [*places, EqualTo(("tags",), "A")])
    assert rest == places


def test_what_options_say_holds_beside_a_filter(live_cluster: LiveCluster) -> None:
    end = json.dumps({"orders": {"*": {"0": 9}, "broker-b": {"0": 3, "1": 0}}})
    read = topic_read(live_cluster.name_server, queueIds="0,1", endingOffsets=end)
    left, rest = narrowed(read, [EqualTo(("queue_id",), 0), GreaterThan(("queue_offset",), 1)])
    assert rest == []
    places = [(row["broker_name"], row["queue_id"], row["queue_offset"]) for row in rows(left)]
    assert places == [*(("broker-a", 0, offset) for offset in range(2, 9)), ("broker-b", 0, 2)]


def test_offsets_of_an_option_are_checked_though_a_filter_leaves_them_out(live_cluster: LiveCluster) -> None:
    end = json.dumps({"orders": {"broker-b": {"1": EACH + 1}}})
    read = topic_read(live_cluster.name_server, endingOffsets=end)
    left, rest = narrowed(read, [EqualTo(("broker_name",), "broker-a")])
    assert rest == []
    with pytest.raises(DataLossError, match=f"broker broker-b, queue 1: offset {EACH + 1} is not there yet"):
        left.plan()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("condition", "filters"),
    [
        ("broker_name = 'broker-a' AND queue_id IN (0, 2) AND queue_offset BETWEEN 5 AND 20 AND tags = 'paid'", 0),
        ("queue_offset < 9 AND length(body) > 50", 1),
    ],
)
def test_a_filter_that_is_taken_is_gone_from_the_plan(  # noqa: PLR0917
    spark: SparkSession,
    engine: str,
    live_cluster: LiveCluster,
    capsys: pytest.CaptureFixture[str],
    condition: str,
    filters: int,
) -> None:
    frame = load(spark, engine, live_cluster, pushdown="true").where(condition)
    frame.explain()
    assert capsys.readouterr().out.count("Filter (") == filters
    assert rows_of(frame) == rows_of(stored(spark, live_cluster).where(condition))
