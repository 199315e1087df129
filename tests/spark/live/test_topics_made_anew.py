"""A stream notices that its topic was deleted and made again, or lost messages, however short a run is."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rmqfast
from rmqfast import Message
from rmqfast._native import SparkStream, TopicRead, read_piece
from rmqfast.errors import DataLossError
from rmqfast.store import COLUMNS
from tests.client.ranges.clusters import RestartableCluster
from tests.spark.live import topics
from tests.spark.live.streams import ended, failure, stream, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READ = 200


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RestartableCluster]:
    """A broker with a queue of `orders`."""
    with RestartableCluster(tmp_path / "store") as started:
        started.create("orders")
        started.fill("orders", READ, size=10)
        yield started


def of_topic(cluster: RestartableCluster, **changes: str) -> SparkStream:
    options = {"nameServer": cluster.name_server, "topic": "orders", "startingOffsets": "earliest"} | changes
    return SparkStream.of_topic(TopicRead("topic stream", options, COLUMNS))


def make_anew(cluster: RestartableCluster, count: int, queues: int = 1) -> None:
    with rmqfast.Admin(name_server=cluster.name_server) as admin:
        admin.topics.delete("orders")
        admin.create_topic("orders", queues=queues)
    if count:
        cluster.fill("orders", count, size=10)


def spread(cluster: RestartableCluster, topic: str, count: int) -> None:
    """Messages in each queue in turn."""
    with rmqfast.Producer("tests", name_server=cluster.name_server) as producer:
        for _ in range(count):
            producer.send(Message(topic, b"x"))


def offsets(text: str) -> dict[str, int]:
    """The offset of each queue of `orders` that a checkpoint says."""
    of: dict[str, int] = json.loads(text)["orders"]["broker-a"]
    return of


def times(text: str) -> list[str]:
    """The members of a checkpoint that say when messages were stored."""
    return [name for name, queues in json.loads(text)["orders"].items() if not queues]


def position(offset: int, stored: int | None = None) -> str:
    members: dict[str, Any] = {"broker-a": {"0": offset}}
    if stored is not None:
        members[f"broker-a stored 0:{stored}"] = {}
    return json.dumps({"orders": members})


def last_stored(cluster: RestartableCluster) -> int:
    with rmqfast.Admin(name_server=cluster.name_server) as admin:
        return admin.topics.status("orders")[0].last_update_timestamp


def checkpoint(cluster: RestartableCluster, **changes: str) -> str:
    """Where a stream is that has read all."""
    of = of_topic(cluster, **changes)
    end = of.latest(of.initial(), is_limited=True)
    of.close()
    return end


@pytest.mark.parametrize("count", [0, 3, READ, READ + 50])
def test_a_new_run_sees_that_its_topic_was_made_anew(
    cluster: RestartableCluster, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    start = checkpoint(cluster)
    assert start == position(READ, last_stored(cluster))
    make_anew(cluster, count)
    strict = of_topic(cluster)
    strict.aim()
    text = r"broker-a, queue 0: messages are lost: the checkpoint is at offset 200, and .* or the topic was made anew\n"
    with pytest.raises(DataLossError, match=text):
        strict.latest(start, is_limited=True)
    strict.close()
    careless = of_topic(cluster, failOnDataLoss="false")
    careless.aim()
    again = careless.latest(start, is_limited=True)
    assert (offsets(again), times(again)) == ({"0": 0}, [])
    assert caplog.text.count("or the topic was made anew; it goes on at offset 0") == 1
    end = careless.latest(again, is_limited=True)
    assert offsets(end) == {"0": count}
    assert [read_piece(piece)[1] for piece in careless.pieces(again, end)] == (
        [[("orders", "broker-a", 0, 0, count)]] if count else []
    )
    assert careless.latest(end, is_limited=True) == end
    careless.close()


def test_a_checkpoint_of_an_older_release_tells_only_that_the_topic_ends_before_it(
    cluster: RestartableCluster, caplog: pytest.LogCaptureFixture
) -> None:
    of = of_topic(cluster)
    # nothing came, so that nothing is written
    assert of.latest(position(READ), is_limited=True) == position(READ)
    make_anew(cluster, 3)
    with pytest.raises(DataLossError, match="the checkpoint is at offset 200, and the queue ends at 3: "):
        of.latest(position(READ), is_limited=True)
    of.close()
    careless = of_topic(cluster, failOnDataLoss="false")
    assert careless.latest(position(READ), is_limited=True) == position(0)
    assert "it goes on at offset 0" in caplog.text
    careless.close()


def test_a_broker_that_lost_its_last_messages_goes_on_behind_those_that_it_has(
    cluster: RestartableCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """As if the stream had read fifty messages more."""
    start = position(READ + 50, last_stored(cluster))
    with pytest.raises(DataLossError, match="the queue ends at 200: its broker lost its last messages"):
        of_topic(cluster).latest(start, is_limited=True)
    careless = of_topic(cluster, failOnDataLoss="false")
    # not from its first message on: those were read
    assert careless.latest(start, is_limited=True) == position(READ, last_stored(cluster))
    assert "it goes on at offset 200" in caplog.text
    careless.close()


def test_a_stream_that_did_not_say_where_it_was_sees_it_when_its_tasks_are_planned(cluster: RestartableCluster) -> None:
    """As PySpark before 4.2 asks."""
    start = checkpoint(cluster)
    make_anew(cluster, 3)
    strict = of_topic(cluster)
    end = strict.latest(None, is_limited=False)
    with pytest.raises(DataLossError, match="the queue ends at 3: "):
        strict.pieces(start, end)
    strict.close()
    careless = of_topic(cluster, failOnDataLoss="false")
    end = careless.latest(None, is_limited=False)
    (piece,) = careless.pieces(start, end)
    assert read_piece(piece)[1] == [("orders", "broker-a", 0, 0, 3)]
    careless.close()


def test_queues_that_a_topic_has_no_more_are_a_loss_if_they_were_not_read(
    cluster: RestartableCluster, caplog: pytest.LogCaptureFixture
) -> None:
    with rmqfast.Admin(name_server=cluster.name_server) as admin:
        admin.create_topic("bills", queues=2)
        spread(cluster, "bills", 20)
        read = of_topic(cluster, topic="bills")
        end = read.latest(read.initial(), is_limited=True)
        admin.topics.update("bills", queues=1)
        assert read.latest(end, is_limited=True) == end
        read.close()
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []
    unread = end.replace('"1": 10', '"1": 7')
    assert unread != end
    text = (
        "queue 1: messages are lost: the checkpoint is at offset 7, and the queue, which has messages up to 10, cannot"
    )
    strict = of_topic(cluster, topic="bills")
    with pytest.raises(DataLossError, match=text):
        strict.latest(unread, is_limited=True)
    strict.close()
    careless = of_topic(cluster, topic="bills", failOnDataLoss="false")
    assert careless.latest(unread, is_limited=True) == unread
    assert "cannot be read any more: the topic has fewer queues; it goes on at offset 7" in caplog.text
    careless.close()


def test_a_stream_is_told_of_a_broker_that_does_not_have_its_topic_now(
    cluster: RestartableCluster, caplog: pytest.LogCaptureFixture
) -> None:
    of = of_topic(cluster)
    start = json.dumps({"orders": {"broker-a": {"0": READ}, "broker-z": {"0": 7}}})
    for _ in range(2):
        assert offsets(of.latest(start, is_limited=True)) == {"0": READ}
    assert caplog.text.count("topic orders: broker broker-z is not in its route now: the stream stays where it is") == 1
    of.close()


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("trigger", [{}, {"processingTime": "200 milliseconds"}], ids=["available now", "default"])
def test_a_stream_of_a_topic_that_was_made_anew_fails_or_reads_all_of_it(
    spark: SparkSession, engine: str, tmp_path: Path, trigger: dict[str, str]
) -> None:
    with topics.cluster_in(tmp_path / "cluster", brokers=1) as cluster:
        topics.create(cluster, "orders", queues=2)
        topics.fill(cluster, 40, "orders")
        ended(write(stream(spark, engine, cluster.name_server), tmp_path))
        with rmqfast.Admin(name_server=cluster.name_server) as admin:
            admin.topics.delete("orders")
        topics.create(cluster, "orders", queues=2)
        topics.fill(cluster, 6, "orders")
        assert "or the topic was made anew" in failure(
            write(stream(spark, engine, cluster.name_server), tmp_path, **trigger)
        )
        careless = stream(spark, engine, cluster.name_server, failOnDataLoss="false")
        query = write(careless, tmp_path, **trigger)
        if trigger:
            query.processAllAvailable()
            query.stop()
        else:
            # PySpark before 4.2 takes one batch
            ended(query)
            ended(write(careless, tmp_path))
        assert spark.read.parquet(str(tmp_path / "out")).count() == 46
