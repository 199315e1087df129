"""`writeStream.foreach` with the writer of the JVM: rows are sent as they come, not when their epoch ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rmqfast
from tests.waiting import until

from .scene import Scene

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

COLUMNS = (
    "value AS body",
    "concat('t', value) AS tags",
    "map('n', value, 'null', CAST(NULL AS string)) AS properties",
    "array('k', NULL, value) AS keys",
    "CAST(value % 4 AS int) AS queue_id",
)


@pytest.fixture(autouse=True)
def _no_query_is_left(spark: SparkSession) -> Iterator[None]:
    yield
    for query in spark.streams.active:
        query.stop()


def foreach(spark: SparkSession, scene: Scene, topic: str, files: Path, columns: tuple[str, ...]) -> Any:
    """A query that sends the lines of files, started by Java: PySpark's own `foreach` takes functions of Python."""
    frame = spark.readStream.text(str(files)).selectExpr(*columns)
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - as the JVM's own users call it
    options = jvm.java.util.HashMap()
    options.put("nameServer", scene.name_server)
    options.put("topic", topic)
    java_frame: Any = frame._jdf  # noqa: SLF001
    sender = jvm.org.rmqfast.spark.TopicForeachWriter(java_frame.schema(), options)
    return java_frame.writeStream().foreach(sender).option("checkpointLocation", f"{files}.checkpoint")


def lines(directory: Path, numbers: range) -> Path:
    directory.mkdir()
    (directory / "a.txt").write_text("".join(f"{number}\n" for number in numbers))
    return directory


def test_rows_of_each_epoch_are_stored(spark: SparkSession, scene: Scene, tmp_path: Path) -> None:
    topic = scene.topic()
    query = foreach(spark, scene, topic, lines(tmp_path / "files", range(1000)), COLUMNS).start()
    query.processAllAvailable()
    query.stop()
    rows = scene.stored(topic)
    assert sorted(int(row["body"]) for row in rows) == list(range(1000))
    for row in rows:
        text = row["body"].decode()
        assert (row["tags"], row["keys"], row["queue_id"]) == (f"t{text}", f"k {text}", int(text) % 4)
        assert row["properties"]["n"] == text


def test_a_row_is_sent_while_its_epoch_goes_on(spark: SparkSession, own_scene: Scene, tmp_path: Path) -> None:
    topic = own_scene.topic()
    # the second row takes longer than anybody waits
    slow = "CASE WHEN value = '1' THEN java_method('java.lang.Thread', 'sleep', 600000L) ELSE value END AS body"
    query = foreach(spark, own_scene, topic, lines(tmp_path / "files", range(2)), (slow,)).start()
    until(lambda: own_scene.stored(topic), patience=120)
    assert query.isActive()
    with rmqfast.Admin(name_server=own_scene.name_server) as admin:
        (connection,) = admin.groups.producer_connections("rmqfast_spark", topic)
    assert connection.client_id.startswith("127.0.0.1@")
    query.stop()


def test_options_and_columns_are_checked_at_once(spark: SparkSession, scene: Scene, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="ArgumentError: schema: column tags: expected string, got int"):
        foreach(spark, scene, "orders", lines(tmp_path / "files", range(1)), ("value AS body", "1 AS tags"))
