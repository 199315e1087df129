"""What the sink sends to RocketMQ's own broker, as the official Java client gets it; a crash loses no row."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import rmqfast
from rmqfast.spark import write_topic
from tests.broker.interop.cluster import SCENARIO, RealCluster
from tests.interop.rocketmq import java
from tests.waiting import until

from .test_write_topic import all_columns, by_all, expected, found

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.soak, pytest.mark.timeout(900)]

WORDS = ("--mode", "pull", "--group", "g", "--full-body")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    directory = tmp_path_factory.mktemp("cluster")
    with RealCluster("4.9.4", directory, SCENARIO, heap="-Xms256m -Xmx512m") as running:
        yield running


def consumed(cluster: RealCluster, topic: str) -> list[dict[str, Any]]:
    """The rows of a topic, as the pull consumer of 4.9.4 gets them."""
    printed = java("4.9.4", "Consume", "--namesrv", cluster.name_server, "--topic", topic, *WORDS)
    rows = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return [row | {"queue_id": row["queueId"], "body": base64.b64decode(row["body"])} for row in rows]


def make(cluster: RealCluster, topic: str) -> str:
    with rmqfast.Producer("interop", name_server=cluster.name_server) as producer:
        producer.create_topic(topic, 4)
    return topic


def test_java_gets_what_was_sent_with_all_its_columns(spark: SparkSession, cluster: RealCluster) -> None:
    topic = make(cluster, "columns")
    assert write_topic(all_columns(spark, 2000), cluster.name_server, topic).rows == 2000
    rows = consumed(cluster, topic)
    assert sorted(found(rows), key=by_all) == sorted(map(expected, range(2000)), key=by_all)
    assert len({row["msgId"] for row in rows}) == 2000
    delayed = make(cluster, "delayed")
    frame = spark.range(20).selectExpr("concat('later ', id) AS body", "2 - int(id % 2) AS delay_level", "'d' AS tags")
    before = _messages(cluster, delayed)
    assert write_topic(frame, cluster.name_server, delayed).batches == 20
    until(lambda: _messages(cluster, delayed) == before + 20, patience=300)
    bodies = sorted(row["body"].decode() for row in consumed(cluster, delayed))
    assert bodies == sorted(f"later {n}" for n in range(20))


def test_no_row_is_missing_after_the_broker_was_killed_and_started_again(
    spark: SparkSession, cluster: RealCluster
) -> None:
    topic, count = make(cluster, "killed"), 300_000
    frame = spark.range(0, count, 1, 4).selectExpr("CAST(id AS string) AS body", "CAST(id % 4 AS int) AS queue_id")
    before = _messages(cluster, topic)

    def kill_and_start() -> None:
        until(lambda: _messages(cluster, topic) >= before + 10_000, patience=300)
        cluster.kill9()
        cluster.start()

    killer = threading.Thread(target=kill_and_start)
    killer.start()
    written = write_topic(frame, cluster.name_server, topic, batch_size=20, in_flight=2, retry_timeout_ms=300_000)
    killer.join()
    assert written.rows == count
    assert written.retries > 0
    rows = consumed(cluster, topic)
    assert {int(row["body"]) for row in rows} == set(range(count))
    assert len(rows) < count + 1000  # at least once is not many times


def _messages(cluster: RealCluster, topic: str) -> int:
    with rmqfast.Admin(name_server=cluster.name_server) as admin:
        return sum(row.max_offset for row in admin.topics.status(topic))
