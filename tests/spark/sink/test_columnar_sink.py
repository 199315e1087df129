"""The sink of the JVM where something goes wrong meanwhile: brokers that go away, tasks that are killed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.waiting import until

from .engines import logged
from .scene import Scene

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def numbers(spark: SparkSession, count: int, topic: str) -> DataFrame:
    columns = ("CAST(id AS string) AS body", "CAST(id % 2 AS int) AS queue_id", f"'{topic}' AS topic")
    return spark.range(0, count, 1, 2).selectExpr(*columns)


def writer(frame: DataFrame, scene: Scene, **options: int) -> DataFrameWriter:
    made = frame.write.format("rocketmq-columnar").mode("append").option("nameServer", scene.name_server)
    return made.options(**{name: str(value) for name, value in options.items()})


class Job(threading.Thread):
    """A write, and how it failed."""

    def __init__(self, save: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._save, self.failure = save, ""

    def run(self) -> None:
        try:
            self._save()
        except Exception as error:  # noqa: BLE001 - Spark's own class differs by version
            self.failure = str(error)


def test_no_row_is_missing_after_broker_and_name_server_were_restarted(spark: SparkSession, own_scene: Scene) -> None:
    topic, count = own_scene.topic(), 40_000
    with logged(spark) as log:
        job = Job(writer(numbers(spark, count, topic), own_scene, batchSize=10).save)
        job.start()
        # Both tasks have begun: one that begins before the broker is registered again finds no such topic.
        until(lambda: {int(row["body"]) < count // 2 for row in own_scene.stored(topic)} == {True, False}, patience=300)
        own_scene.stop()
        own_scene.start()
        job.join()
    assert job.failure == ""
    assert f"topic of each row: {count} rows" in log()
    stored = own_scene.stored(topic)
    assert {int(row["body"]) for row in stored} == set(range(count))
    # what was sent once more has the id that it had before
    assert len({row["msg_id"] for row in stored}) == count


def test_a_task_waits_for_a_name_server_and_gives_up_in_time(spark: SparkSession, own_scene: Scene) -> None:
    topic = own_scene.topic()
    own_scene.stop()
    job = Job(writer(numbers(spark, 2, topic), own_scene, retryTimeoutMs=100).save)
    job.run()
    assert f"tried for 0.1 s (retryTimeoutMs): connect to <{own_scene.name_server}> failed" in job.failure
    assert f"row 0 {{topic: '{topic}'" in job.failure


def test_tasks_that_are_killed_end_although_no_broker_answers(spark: SparkSession, own_scene: Scene) -> None:
    topic = own_scene.topic()
    own_scene.stop()
    job = Job(writer(numbers(spark, 200_000, topic), own_scene, retryTimeoutMs=86_400_000).save)
    job.start()
    until(spark.sparkContext.statusTracker().getActiveStageIds, patience=60)
    spark.sparkContext.cancelAllJobs()
    job.join()
    assert "cancel" in job.failure
    # both cores are free again, or this would wait for a day
    assert spark.range(0, 4, 1, 4).count() == 4


def test_what_a_broker_that_stopped_does_not_take_goes_to_the_other_one(spark: SparkSession, tmp_path: Path) -> None:
    with Scene(tmp_path / "pair", brokers=2) as pair:
        topic, count = pair.topic(queues=2), 40_000
        job = Job(writer(numbers(spark, count, topic).drop("queue_id"), pair, batchSize=10).save)
        job.start()
        until(lambda: len({row["broker_name"] for row in pair.stored(topic)}) == 2, patience=300)
        pair.cluster.brokers[1].stop()
        job.join()
        assert job.failure == ""
        assert {int(row["body"]) for row in pair.stored(topic)} == set(range(count))
