"""`write_topic`, on every PySpark: a DataFrame becomes a topic, and what cannot be sent is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rmqfast
from rmqfast.errors import ArgumentError, ClientError, UnknownColumnError
from rmqfast.message import MessageQueue
from rmqfast.spark import write_topic
from tests.waiting import collect

from .scene import Scene

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

ALL = (
    "CASE WHEN id % 5 = 0 THEN repeat('ä', 10) ELSE concat('body ', id) END AS body",
    "CASE WHEN id % 3 > 0 THEN concat('tag', id % 3) END AS tags",
    "CASE WHEN id % 2 > 0 THEN array('k', CAST(NULL AS string), concat('k', id)) END AS keys",
    "CASE WHEN id % 7 > 0 THEN map('n', CAST(id AS string), 'null', CAST(NULL AS string)) END AS properties",
    "CAST(id % 4 AS int) AS queue_id",
    "CAST(id % 10 AS int) AS flag",
    "CAST(0 AS bigint) AS delay_level",
)
COMPARED = ("body", "tags", "keys", "queue_id", "flag")


def all_columns(spark: SparkSession, count: int = 1000) -> DataFrame:
    return spark.range(0, count, 1, 3).selectExpr(*ALL)


def expected(number: int) -> dict[str, Any]:
    """The message of row `number`, as it is stored."""
    return {
        "body": ("ä" * 10 if number % 5 == 0 else f"body {number}").encode(),
        "tags": f"tag{number % 3}" if number % 3 else None,
        "keys": f"k k{number}" if number % 2 else None,
        "queue_id": number % 4,
        "flag": number % 10,
        "n": str(number) if number % 7 else None,
    }


def found(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: row[name] for name in COMPARED} | {"n": row["properties"].get("n")} for row in rows]


def by_all(row: dict[str, Any]) -> list[str]:
    return [str(value) for value in row.values()]


def test_all_columns_arrive_and_a_consumer_gets_them(spark: SparkSession, scene: Scene) -> None:
    topic = scene.topic()
    written = write_topic(all_columns(spark), scene.name_server, topic)
    assert (written.rows, written.retries) == (1000, 0)
    assert written.batches >= 12  # 3 partitions, 4 queues
    assert written.bytes > 20_000
    wanted = sorted((expected(number) for number in range(1000)), key=by_all)
    assert sorted(found(scene.stored(topic)), key=by_all) == wanted
    with rmqfast.LitePullConsumer("sink-test", name_server=scene.name_server) as consumer:
        consumer.assign([MessageQueue(topic, "broker-a", queue_id) for queue_id in range(4)])
        for queue_id in range(4):
            consumer.seek(MessageQueue(topic, "broker-a", queue_id), 0)
        messages = collect(lambda: consumer.poll(1.0), 1000)
    got = [{name: getattr(each, name) for name in (*COMPARED, "properties")} for each in messages]
    assert sorted(found(got), key=by_all) == wanted


def test_an_empty_data_frame_sends_nothing(spark: SparkSession, scene: Scene) -> None:
    topic = scene.topic()
    assert write_topic(all_columns(spark, 0), scene.name_server, topic).counts() == (0, 0, 0, 0, 0)
    assert scene.stored(topic) == []


def test_a_row_that_cannot_be_sent_ends_the_job_and_is_told_with_its_partition(
    spark: SparkSession, scene: Scene
) -> None:
    topic = scene.topic()
    frame = spark.range(0, 100, 1, 2).selectExpr("IF(id = 70, '', concat('body ', id)) AS body", "'t' AS tags")
    with pytest.raises(Exception) as caught:  # noqa: PT011  # Spark's own class differs by version
        write_topic(frame, scene.name_server, topic)
    text = (
        f"ClientError: partition 1, row 20 {{topic: '{topic}', body: 0 bytes b'', tags: 't'}}: expected a body of one"
    )
    assert text in str(caught.value)


def test_what_is_wrong_is_said_in_the_driver_before_anything_is_sent(spark: SparkSession) -> None:
    frame, nobody = all_columns(spark, 10), "127.0.0.1:1"
    with pytest.raises(UnknownColumnError, match="'bdy'"):
        write_topic(frame.withColumnRenamed("body", "bdy"), nobody, "orders")
    with pytest.raises(ClientError, match=f"connect to <{nobody}> failed"):
        write_topic(frame, nobody, "orders")
    with pytest.raises(ArgumentError, match="expected a DataFrame that is no stream"):
        write_topic(spark.readStream.format("rate").load().selectExpr("'x' AS body"), nobody, "orders")
    with pytest.raises(TypeError, match="topik"):
        write_topic(frame, nobody, topik="orders")
