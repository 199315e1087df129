"""Reads and streams of RocketMQ's own brokers: rows as in their stores, also where a broker is killed meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rmqfast
from rmqfast import Message
from rmqfast.spark import read_store
from tests.client.ranges.clusters import PieceRead, QueueRange, request
from tests.interop.rocketmq import RocketMQ
from tests.spark.live.streams import each_once, ended, places, stream, write
from tests.spark.live.test_equal_rows import rows_of, topic_frame
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.soak,
    pytest.mark.newest,
    pytest.mark.timeout(1200),
]

COUNT = 20_000
# a busy machine is no failure
BUSY = ("brokerFastFailureEnable=false", "osPageCacheBusyTimeOutMills=60000")
PROPERTIES = ("enablePropertyFilter=true", "mappedFileSizeCommitLog=8388608", *BUSY)


@pytest.fixture(scope="module", params=["4.9.4", "5.3.3", "5.5.0"])
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RocketMQ]:
    """A real broker with messages in the topic `orders`."""
    directory = tmp_path_factory.mktemp("real")
    with RocketMQ(request.param, directory, *PROPERTIES, heap="-Xms256m -Xmx512m", clean=False) as started:
        started.create_topic("orders", 4)
        send(started, range(COUNT))
        yield started


def send(real: RocketMQ, numbers: range) -> None:
    with rmqfast.Producer("tests", name_server=real.name_server) as producer:
        producer.send_many(
            [
                Message("orders", b"%d" % n * 50, tags=("Aa", "BB", "C")[n % 3], keys=f"k{n}", properties={"n": str(n)})
                for n in numbers
            ]
        )


def stored(spark: SparkSession, real: RocketMQ, **arguments: Any) -> DataFrame:
    name = ends(real).popitem()[0][0]
    return read_store(spark, real.store, "orders", broker_name=name, engine="arrow", **arguments)


def ends(real: RocketMQ) -> dict[tuple[str, int], int]:
    with rmqfast.Admin(name_server=real.name_server) as admin:
        return {(row.broker_name, row.queue_id): row.max_offset for row in admin.topics.status("orders")}


def test_rows_are_those_of_the_store_column_by_column(spark: SparkSession, engine: str, real: RocketMQ) -> None:
    times = sorted(row[0] for row in stored(spark, real).selectExpr("unix_millis(store_timestamp)").collect())
    chosen: tuple[dict[str, Any], ...] = (
        {},
        {"tags": "Aa"},
        {"sql": "n BETWEEN 100 AND 5000", "tags": "BB || C"},
        {"start_time": times[COUNT // 4], "end_time": times[COUNT // 2]},
        {"queue_ids": [1], "columns": ["broker_name", "queue_id", "queue_offset", "body"]},
    )
    for arguments in chosen:
        wanted = rows_of(stored(spark, real, **arguments))
        assert len(wanted) > 100
        assert rows_of(topic_frame(spark, engine, real.name_server, **arguments)) == wanted, arguments


def test_a_pattern_matches_what_producers_made_and_nothing_of_rocketmq(
    spark: SparkSession, engine: str, real: RocketMQ
) -> None:
    real.create_topic("orders-eu", 1)
    with rmqfast.Producer("tests", name_server=real.name_server) as producer:
        sent = producer.send(Message("orders-eu", b"x")).queue_offset + 1
    with rmqfast.Admin(name_server=real.name_server) as admin:
        # a topic of its name, for one
        assert "DefaultCluster" in admin.topics.all()
    wanted = {"orders": sum(ends(real).values()), "orders-eu": sent}
    # the broker lists a message in its queue a moment after it took it
    until(lambda: counts(spark, engine, real, ".*").get("orders-eu") == sent)
    assert counts(spark, engine, real, ".*") == wanted
    assert counts(spark, engine, real, "orders-.*") == {"orders-eu": sent}


def counts(spark: SparkSession, engine: str, real: RocketMQ, pattern: str) -> dict[str, int]:
    """Messages by topic."""
    options = {"nameServer": real.name_server, "subscribePattern": pattern, "columns": "topic"}
    frame = spark.read.format(engine).options(**options).load()
    return {row[0]: row[1] for row in frame.groupBy("topic").count().collect()}


def test_a_broker_that_is_killed_amid_a_range_gives_the_rest_when_it_is_back(real: RocketMQ) -> None:
    with rmqfast.Admin(name_server=real.name_server) as admin:
        ranges = [QueueRange(row.queue, 0, row.max_offset) for row in admin.topics.status("orders")]
    pull = PieceRead(request(real.name_server, columns=("queue_offset",), retryTimeoutMs=300_000), ranges)
    batches = pull.batches()
    next(batches)
    real.kill9()
    real.start()
    for _ in batches:
        pass
    assert pull.rows == sum(ranged.end - ranged.start for ranged in ranges)


def test_a_stream_stores_each_message_once_though_its_broker_is_killed(
    spark: SparkSession, engine: str, real: RocketMQ, tmp_path: Path
) -> None:
    frame = stream(spark, engine, real.name_server, maxOffsetsPerTrigger="3000", retryTimeoutMs="300000")
    query = write(frame, tmp_path, processingTime="100 milliseconds")
    try:
        until(lambda: query.recentProgress, patience=300)
        first = max(ends(real).values())
        for number in range(2):
            send(real, range(first + 1000 * number, first + 1000 * (number + 1)))
            real.kill9()
            real.start()
        query.processAllAvailable()
    finally:
        query.stop()
    ended(write(frame, tmp_path))
    assert places(spark, tmp_path) == each_once(ends(real))
