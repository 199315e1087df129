"""Reads of topics out of a mirror's copies: rows are those of pulls, between the offsets that the cluster says."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rmqfast import Admin, EmbeddedCluster, Mirror, MirrorOptions
from rmqfast._native import TopicRead
from rmqfast.errors import ArgumentError, CorruptError, DataLossError
from rmqfast.spark import read_topic
from rmqfast.spark.live.task import read_topic_piece
from rmqfast.store import COLUMNS
from tests.spark.conftest import plan
from tests.spark.engines import JVM
from tests.spark.in_process import Row, rows_in, topic_rows
from tests.waiting import until

from . import topics
from .test_equal_rows import BOTH, PLACE, by_place, options_of
from .topics import LiveCluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT, LATE = 900, 60
PLACES = "topic,queue_id,queue_offset,tags,body"
#: Bytes of a file of the log that a few hundred messages fill.
FILE = 65536


@dataclass(frozen=True)
class Mirrored:
    """A cluster of one broker, and copies of it.

    Attributes:
        copies: The newest has all messages but the last ones, the broker has lost the first.
        first: The broker's first offset of each queue.
    """

    name_server: str
    copies: Path
    first: dict[int, int]


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirrored]:
    store, copies = (tmp_path_factory.mktemp(name) for name in ("store", "copies"))
    config = {"mappedFileSizeCommitLog": str(FILE)}
    with topics.cluster_in(store, 1, **config) as cluster:
        for topic in ("orders", "later"):
            topics.create(cluster, topic)
        topics.send(cluster, 100)
    shutil.copytree(store, copies / "broker-a")
    with topics.cluster_in(store, 1, **config) as cluster:
        topics.send(cluster, COUNT - 100, first=100)
    shutil.copytree(store, copies / "broker-a.2")
    # as retention does
    (store / "commitlog" / "0".zfill(20)).unlink()
    with topics.cluster_in(store, 1, **config) as cluster:
        topics.send(cluster, LATE, first=COUNT)
        topics.fill(cluster, 40, "later")
        starts: dict[int, int] = {}
        for row in rows_of({"nameServer": cluster.name_server, "subscribe": "orders"}):
            starts[row["queue_id"]] = min(row["queue_offset"], starts.get(row["queue_id"], COUNT))
        assert min(starts.values()) > 10
        yield Mirrored(cluster.name_server, copies, starts)


def rows_of(options: dict[str, str]) -> list[Row]:
    return sorted(topic_rows(TopicRead("topic batch", options, COLUMNS)), key=itemgetter("topic", *PLACE))


def options_for(mirrored: Mirrored, **options: str) -> dict[str, str]:
    return {
        "nameServer": mirrored.name_server,
        "subscribe": "orders",
        "via": "mirror",
        "mirrorPath": str(mirrored.copies),
    } | options


def each_queue(offset: int) -> str:
    return json.dumps({"orders": {"*": {str(queue): offset for queue in range(4)}}})


@pytest.mark.parametrize("arguments", BOTH.values(), ids=BOTH)
def test_rows_are_those_of_pulls(live_cluster: LiveCluster, arguments: dict[str, Any]) -> None:
    """The directory of a cluster in this process has a store for each broker, as that of a mirror has."""
    options = {"nameServer": live_cluster.name_server, "topic": "orders"} | options_of(arguments)
    columns = arguments.get("columns", COLUMNS)
    mirror = {"via": "mirror", "mirrorPath": str(live_cluster.directory)}
    for more in ({}, {"minPartitions": "7"}):
        rows = topic_rows(TopicRead("topic batch", options | mirror | more, columns))
        assert len(rows) > 50
        assert by_place(rows) == by_place(topic_rows(TopicRead("topic batch", options, columns)))
        assert list(rows[0]) == list(columns)


def test_queues_begin_where_the_newest_copy_does_and_what_it_has_not_yet_is_told(
    mirrored: Mirrored, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rmqfast.spark")
    rows = rows_of(options_for(mirrored))
    assert [(row["queue_id"], row["queue_offset"]) for row in rows] == [
        (queue, offset) for queue in range(4) for offset in range(COUNT // 4)
    ]
    told = f"read out of the copies in {mirrored.copies}: orders of broker-a, whose last {LATE} messages it has not yet"
    assert told in caplog.messages
    pulled = rows_of({"nameServer": mirrored.name_server, "subscribe": "orders"})
    of_both = [row for row in rows if row["queue_offset"] >= mirrored.first[row["queue_id"]]]
    assert of_both == [row for row in pulled if row["queue_offset"] < COUNT // 4]
    caplog.clear()
    assert rows_of(options_for(mirrored, subscribe="later")) == []
    told = "later of broker-a, and nothing of 1 of its queues with 40 messages"
    assert f"read out of the copies in {mirrored.copies}: {told}" in caplog.messages


def test_offsets_are_those_of_the_cluster_or_what_the_copy_has_before_them(
    mirrored: Mirrored, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rmqfast.spark")
    rows = rows_of(options_for(mirrored, startingOffsets=each_queue(5), endingOffsets=each_queue(60)))
    assert [row["queue_offset"] for row in rows] == [*range(5, 60)] * 4
    assert f"read out of the copies in {mirrored.copies}: orders of broker-a" in caplog.messages
    for options in ({"startingOffsets": each_queue(COUNT)}, {"endingOffsets": each_queue(COUNT)}):
        with pytest.raises(DataLossError, match=f"offset {COUNT} is not there yet, the queue has 0 to 240"):
            rows_of(options_for(mirrored, **options))


def test_times_are_exact_also_before_the_broker_s_first_message(mirrored: Mirrored) -> None:
    every = rows_of(options_for(mirrored))
    times = sorted(row["store_timestamp"] for row in every)
    for start, end in ((times[10], times[300]), (times[400], times[800])):
        rows = rows_of(options_for(mirrored, startingTimestamp=str(start), endingTimestamp=str(end)))
        assert rows == [row for row in every if start <= row["store_timestamp"] < end]
        assert rows


def test_a_copy_that_begins_later_is_a_loss_for_offsets_before_that(mirrored: Mirrored, tmp_path: Path) -> None:
    shutil.copytree(mirrored.copies / "broker-a.2", tmp_path / "broker-a")
    (tmp_path / "broker-a" / "commitlog" / "0".zfill(20)).unlink()
    options = options_for(mirrored, mirrorPath=str(tmp_path))
    left = [row for row in rows_of(options_for(mirrored)) if row["queue_offset"] >= mirrored.first[row["queue_id"]]]
    assert rows_of(options) == left
    with pytest.raises(DataLossError, match=r"startingOffsets: .*: offset 5 has expired, the queue has "):
        rows_of(options | {"startingOffsets": each_queue(5)})
    assert rows_of(options | {"startingOffsets": each_queue(5), "failOnDataLoss": "false"}) == left


def test_what_is_gone_or_damaged_is_told_as_that_of_a_store_is(
    mirrored: Mirrored, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(mirrored.copies / "broker-a.2", tmp_path / "broker-a")
    log = tmp_path / "broker-a" / "commitlog"
    strict, other = (
        TopicRead("topic batch", options_for(mirrored, mirrorPath=str(tmp_path), failOnDataLoss=text), COLUMNS)
        for text in ("true", "false")
    )
    every = rows_of(options_for(mirrored))
    (piece,) = strict.plan()
    second = log / str(FILE).zfill(20)
    second.write_bytes(bytes(1000) + second.read_bytes()[1000:])
    (log / "0".zfill(20)).unlink()
    with pytest.raises(CorruptError, match=r"2 damaged places: .* the log held this when the read was planned"):
        list(read_topic_piece(strict, piece))
    assert 0 < len(rows_in(read_topic_piece(other, piece))) < len(every)
    assert any("damaged places" in message for message in caplog.messages)
    shutil.rmtree(tmp_path / "broker-a")
    with pytest.raises(ArgumentError, match="mirrorPath must be at the same path on every executor"):
        list(read_topic_piece(strict, piece))


def test_of_a_topic_that_was_made_again_the_second_life_is_read(tmp_path: Path) -> None:
    with topics.cluster_in(tmp_path / "store", 1) as cluster:
        topics.create(cluster, "again")
        topics.fill(cluster, 300, "again", b"of the first life")
        with Admin(name_server=cluster.name_server) as admin:
            admin.topics.delete("again", cluster="DefaultCluster")
        topics.create(cluster, "again")
        topics.fill(cluster, 40, "again", b"of the second life")
        copy_of(cluster, tmp_path / "copies")
        options = {"nameServer": cluster.name_server, "subscribe": "again"}
        rows = rows_of(options | {"via": "mirror", "mirrorPath": str(tmp_path / "copies")})
        assert rows == rows_of(options)
    assert [row["body"] for row in rows] == [b"of the second life"] * 40


def test_a_queue_of_which_a_copy_has_nothing_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "rmqfast.spark")
    with topics.cluster_in(tmp_path / "store", 1, mappedFileSizeCommitLog=str(FILE)) as cluster:
        for topic in ("idle", "orders"):
            topics.create(cluster, topic)
        topics.fill(cluster, 8, "idle")
        topics.send(cluster, 400)
        copy_of(cluster, tmp_path / "copies", start="latest")
        copies = {"via": "mirror", "mirrorPath": str(tmp_path / "copies")}
        assert rows_of({"nameServer": cluster.name_server, "subscribe": "idle"} | copies) == []
    told = f"{tmp_path / 'copies'}: idle of broker-a, and nothing of 1 of its queues with 8 messages"
    assert f"read out of the copies in {told}" in caplog.messages


def test_a_copy_of_another_broker_is_refused(tmp_path: Path) -> None:
    with topics.cluster_in(tmp_path / "store") as cluster:
        topics.create(cluster, "orders")
        topics.send(cluster, 40)
        copy_of(cluster, tmp_path)
        shutil.rmtree(tmp_path / "broker-b")
        (tmp_path / "broker-a").rename(tmp_path / "broker-b")
        copies = {"via": "mirror", "mirrorPath": str(tmp_path)}
        with pytest.raises(ArgumentError, match=r"expected a copy of broker-b at .*, got one of broker-a"):
            rows_of({"nameServer": cluster.name_server, "subscribe": "orders"} | copies)


def copy_of(cluster: EmbeddedCluster, copies: Path, **options: Any) -> None:
    """A mirror's copies of all that the brokers have from the start on."""
    options_of_mirror = MirrorOptions(**options)
    with Mirror(
        copies, name_server=cluster.name_server, all_brokers=True, options=options_of_mirror, once=True
    ) as mirror:
        until(lambda: mirror.wait(0.1))


@pytest.mark.spark
def test_each_engine_reads_copies_whatever_filters_leave(
    spark: SparkSession, engine: str, live_cluster: LiveCluster
) -> None:
    options = {"nameServer": live_cluster.name_server, "topic": "orders", "columns": f"broker_name,{PLACES}"}
    copied = {"via": "mirror", "mirrorPath": str(live_cluster.directory), "minPartitions": "4"}
    frame = spark.read.format(engine).options(**options, **copied).load()
    pulled = spark.read.format(engine).options(**options).load()
    for condition in (
        "true",
        "broker_name = 'broker-b'",
        "queue_offset >= 100 AND queue_id < 2",
        "queue_offset < 30",
        "tags = 'paid' AND queue_offset > 9",
    ):
        rows = sorted(frame.where(condition).collect(), key=str)
        assert len(rows) > 50
        assert rows == sorted(pulled.where(condition).collect(), key=str), condition
        assert frame.where(condition).count() == len(rows)


@pytest.mark.spark
def test_a_plan_tells_that_copies_are_read(
    spark: SparkSession, mirrored: Mirrored, capsys: pytest.CaptureFixture[str]
) -> None:
    frames = (
        spark.read.format(JVM).options(**options_for(mirrored)).load(),
        read_topic(spark, mirrored.name_server, "orders", via="mirror", mirror_path=mirrored.copies),
    )
    for frame in frames:
        assert f", out of the copies in {mirrored.copies}" in plan(frame, capsys)
        assert frame.count() == COUNT


@pytest.mark.spark
def test_a_stream_reads_no_copies(spark: SparkSession, engine: str, mirrored: Mirrored, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="option via: a stream pulls; read a batch") as caught:  # noqa: PT012
        frame = spark.readStream.format(engine).options(**options_for(mirrored)).load()
        query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
        query.processAllAvailable()
    assert "storePath" in str(caught.value)
