"""`df.write` to a topic, with the data source of PySpark 4.0 and newer and with that of the JVM."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rmqfast
from rmqfast.spark import read_topic

from .conftest import SOURCES
from .scene import Scene
from .test_write_topic import all_columns, by_all, expected, found

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

pytestmark = pytest.mark.spark


Writer = Callable[..., "DataFrameWriter"]


@pytest.fixture
def writer(source: str, scene: Scene) -> Writer:
    """Makes a writer of a data frame, a topic and options."""

    def made(frame: DataFrame, topic: str, **options: object) -> DataFrameWriter:
        writer = frame.write.format(source).option("nameServer", scene.name_server).option("topic", topic)
        return writer.mode("append").options(**{name: str(value) for name, value in options.items()})

    return made


def refused(made: DataFrameWriter) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011  # Spark's own class differs by version
        made.save()
    return str(caught.value)


@pytest.mark.old_spark
def test_a_data_frame_becomes_a_topic_and_the_topic_a_data_frame(
    spark: SparkSession, scene: Scene, writer: Writer
) -> None:
    topic, copy = scene.topic(), scene.topic()
    writer(all_columns(spark), topic, batchSize=100).save()
    wanted = sorted(map(expected, range(1000)), key=by_all)
    assert sorted(found(scene.stored(topic)), key=by_all) == wanted
    read = read_topic(spark, scene.name_server, topic)
    rows = [row.asDict() | {"body": bytes(row["body"])} for row in read.collect()]
    assert sorted(found(rows), key=by_all) == wanted
    writer(read.drop("broker_name"), copy).save()
    kept = ("queue_id", "msg_id", "tags", "keys", "body", "properties", "flag")
    first, second = (
        sorted(({name: row[name] for name in kept} for row in scene.stored(each)), key=lambda row: row["msg_id"])
        for each in (topic, copy)
    )
    assert len(first) == 1000
    assert first == second


def test_strings_and_nulls(spark: SparkSession, scene: Scene, writer: Writer) -> None:
    topic = scene.topic()
    frame = spark.createDataFrame([("a", None, None), ("b", "t", "k1 k2")], "body string, tags string, keys string")
    writer(frame, topic).save()
    rows = sorted((row["body"], row["tags"], row["keys"]) for row in scene.stored(topic))
    assert rows == [(b"a", None, None), (b"b", "t", "k1 k2")]


def test_what_is_wrong_is_said_before_anything_is_sent(spark: SparkSession, scene: Scene, writer: Writer) -> None:
    """What else columns and options can be is seen in `test_sink_columns.py` and `test_sink_options.py`."""
    frame, topic = all_columns(spark, 10), scene.topic()
    assert "mode: expected append, got overwrite" in refused(writer(frame, topic).mode("overwrite"))
    assert "connect to <127.0.0.1:1> failed" in refused(writer(frame, topic, nameServer="127.0.0.1:1"))
    assert scene.stored(topic) == []


def test_a_row_that_cannot_be_sent_ends_the_job(spark: SparkSession, scene: Scene, writer: Writer) -> None:
    topic = scene.topic()
    frame = spark.range(0, 100, 1, 2).selectExpr("IF(id = 70, NULL, 'body') AS body")
    text = refused(writer(frame, topic))
    assert f"ClientError: partition 1, row 20 {{topic: '{topic}', body: null}}: expected a body of one byte" in text


COMMIT = """
from pyspark.sql.types import StructType, StringType
from rmqfast.spark.topic_writer import WrittenPartition, stream_writer
from rmqfast._native import Written
options = {"nameServer": "127.0.0.1:1", "topic": "orders"}
writer = stream_writer(options, StructType().add("body", StringType()), overwrite=False)
sent = [WrittenPartition(Written(3, 300, 1)), WrittenPartition(Written(4, 400, 2, retries=1, less_safe=1)), None]
writer.commit(sent, 7)
writer.abort(sent[:1], 8)
"""


@pytest.mark.skipif("rocketmq" not in SOURCES, reason="this PySpark has no data source of Python")
def test_what_was_sent_is_logged_where_a_job_is_committed() -> None:
    """Spark starts a process for it, where nothing configures logging; its errors go to those of the driver."""
    path = os.pathsep.join([str(Path(rmqfast.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", COMMIT],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    more = "1 tried again, 1 stored less safely than asked for"
    assert f"INFO rmqfast.spark: batch 7, topic orders: 7 rows, 700 bytes in 3 requests, {more}\n" in done.stderr
    aborted = "the job failed; its tasks that ended well sent 3 rows, 300 bytes in 1 requests, which stay\n"
    assert f"WARNING rmqfast.spark: batch 8, topic orders: {aborted}" in done.stderr
