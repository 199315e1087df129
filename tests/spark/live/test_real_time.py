"""Real-Time Mode of Spark 4.1 and newer: rows come while a batch lasts; its checkpoint is that of any stream."""

from __future__ import annotations

import functools
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest

import rmqfast
from tests.effort import effort
from tests.spark.engines import JVM
from tests.spark.live import topics
from tests.spark.live.streams import Place, each_once, ended, failure
from tests.spark.live.test_live_columnar import pullers
from tests.spark.live.test_topic_stream import ends
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from rmqfast import EmbeddedCluster

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.newest,
    pytest.mark.skipif(pyspark.__version__ < "4.3", reason="PySpark has the trigger from 4.3 on"),
]
#: Long enough that all a test waits for comes before a batch ends.
LONG = "600 seconds"
RESTARTS = effort("RMQFAST_RESTARTS", 4, 20)


@pytest.fixture(autouse=True)
def settings(spark: SparkSession) -> Iterator[None]:
    """Batches may be short."""
    name = "spark.sql.streaming.realTimeMode.minBatchDuration"
    spark.conf.set(name, "1s")
    yield
    spark.conf.unset(name)


def append(path: str, row: Any) -> None:
    """A sink of its own in Python's workers: a line a row."""
    with Path(path).open("a", encoding="utf-8") as lines:
        lines.write(json.dumps([row.topic, row.broker_name, row.queue_id, row.queue_offset]) + "\n")


def begin(spark: SparkSession, name_server: str, directory: Path, **given: Any) -> StreamingQuery:
    """Each row is a line, whatever the trigger is; the other names are options."""
    trigger = {name: value for name, value in given.items() if name in ("realTime", "availableNow")}
    options = {"nameServer": name_server, "startingOffsets": "earliest"}
    options |= {name: value for name, value in given.items() if name not in trigger}
    if not {"subscribe", "assign"} & options.keys():
        options["topic"] = "orders"
    frame = spark.readStream.format(JVM).options(**options).load()
    writer: Any = frame.selectExpr("topic", "broker_name", "queue_id", "queue_offset").writeStream
    writer = writer.foreach(functools.partial(append, str(directory / "lines"))).outputMode("update")
    query: StreamingQuery = (
        writer.option("checkpointLocation", str(directory / "checkpoint")).trigger(**trigger).start()
    )
    return query


def topic_lines(directory: Path) -> list[tuple[str, str, int, int]]:
    path = directory / "lines"
    return [tuple(json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def lines(directory: Path) -> list[Place]:
    return [(broker, queue, offset) for _, broker, queue, offset in topic_lines(directory)]


def test_rows_come_within_a_batch_and_nothing_pulls_behind_its_end(spark: SparkSession, tmp_path: Path) -> None:
    with topics.cluster_in(tmp_path / "cluster", brokers=2) as cluster:
        topics.create(cluster, "orders", queues=2)
        query = begin(spark, cluster.name_server, tmp_path, realTime=LONG)
        try:
            until(lambda: pullers(spark) > 0 or query.exception())
            topics.fill(cluster, 5000, "orders")
            wanted = set(each_once(ends(cluster.name_server)))
            # PySpark hands rows to Python's workers in bulk: the last ones when the batch ends
            until(lambda: len(lines(tmp_path)) > 1000 or query.exception())
            assert query.exception() is None
            assert set(lines(tmp_path)) <= wanted
            assert query.lastProgress is None
        finally:
            query.stop()
        until(lambda: pullers(spark) == 0)


def test_a_task_waits_for_messages_of_several_topics(spark: SparkSession, tmp_path: Path) -> None:
    with topics.cluster_in(tmp_path / "cluster", brokers=2) as cluster:
        # more queues than cores: a broker needs one task, however many topics it has
        names = ("bills", "orders", "returns")
        for name in names:
            topics.create(cluster, name, queues=1)
        query = begin(spark, cluster.name_server, tmp_path, subscribe=",".join(names), realTime="2 seconds")
        try:
            for name in names:
                topics.fill(cluster, 20, name)
            wanted = {(name, *place) for name in names for place in each_once(ends(cluster.name_server, name))}
            until(lambda: set(topic_lines(tmp_path)) == wanted or query.exception())
            assert query.exception() is None
            assert len(topic_lines(tmp_path)) == len(wanted)
        finally:
            query.stop()


def test_a_pattern_that_nothing_matches_ends_the_query(spark: SparkSession, tmp_path: Path) -> None:
    with topics.cluster_in(tmp_path / "cluster", brokers=1) as cluster:
        options = {"nameServer": cluster.name_server, "subscribePattern": "orders.*"}
        frame = spark.readStream.format(JVM).options(**options).load()
        writer: Any = frame.writeStream.format("console").outputMode("update")
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query: StreamingQuery = writer.trigger(realTime="2 seconds").start()
        assert "Real-Time Mode: topics like 'orders.*': there is none now" in failure(query)


def test_a_queue_that_is_not_read_any_more_stays_where_it_is(spark: SparkSession, tmp_path: Path) -> None:
    with topics.cluster_in(tmp_path / "cluster", brokers=1) as cluster:
        topics.create(cluster, "orders", queues=2)
        topics.send(cluster, 20)

        def run(options: dict[str, str], wanted: dict[tuple[str, int], int]) -> None:
            query = begin(spark, cluster.name_server, tmp_path, **options, realTime="2 seconds")
            try:
                until(lambda: committed(query, tmp_path) == wanted or query.exception())
                assert query.exception() is None
            finally:
                query.stop()

        before = ends(cluster.name_server)
        run({"topic": "orders"}, before)
        topics.send(cluster, 20)
        wanted = before | {("broker-a", 0): ends(cluster.name_server)["broker-a", 0]}
        run({"assign": json.dumps({"orders": {"broker-a": [0]}})}, wanted)
        assert {line[1:] for line in topic_lines(tmp_path)} == set(each_once(wanted))


def test_a_checkpoint_goes_on_as_a_stream_of_batches_and_back(spark: SparkSession, tmp_path: Path) -> None:
    with topics.cluster_in(tmp_path / "cluster", brokers=1) as cluster:
        topics.create(cluster, "orders", queues=2)

        def fresh() -> set[Place]:
            """The rows of new messages."""
            before = each_once(ends(cluster.name_server))
            topics.fill(cluster, 100, "orders")
            return set(each_once(ends(cluster.name_server)) - before)

        def in_real_time() -> list[Place]:
            """The rows of a query whose batches have all there is."""
            (tmp_path / "lines").unlink(missing_ok=True)
            query = begin(spark, cluster.name_server, tmp_path, realTime="2 seconds")
            try:
                until(lambda: committed(query, tmp_path) == ends(cluster.name_server) or query.exception())
                assert query.exception() is None
            finally:
                query.stop()
            return lines(tmp_path)

        wanted = fresh()
        assert sorted(in_real_time()) == sorted(wanted)
        wanted = fresh()
        (tmp_path / "lines").unlink()
        ended(begin(spark, cluster.name_server, tmp_path, availableNow=True))
        assert sorted(lines(tmp_path)) == sorted(wanted)
        wanted = fresh()
        assert sorted(in_real_time()) == sorted(wanted)


@pytest.mark.parametrize("count", [6, 200])
@pytest.mark.parametrize("is_strict", [True, False], ids=["strict", "careless"])
def test_a_topic_that_is_made_anew_amid_a_query_fails_it_or_is_read_from_its_beginning(
    spark: SparkSession, tmp_path: Path, count: int, is_strict: bool
) -> None:
    with topics.cluster_in(tmp_path / "cluster", brokers=1) as cluster:
        topics.create(cluster, "orders", queues=1)
        topics.fill(cluster, 40, "orders")
        until_committed(spark, cluster, tmp_path)
        (tmp_path / "lines").unlink()
        options = {"failOnDataLoss": str(is_strict).lower()}
        query = begin(spark, cluster.name_server, tmp_path, realTime="10 seconds", **options)
        try:
            # its offsets are fixed, and the batch is longer than what follows
            until(lambda: spark.sparkContext.statusTracker().getActiveJobsIds() or query.exception())
            make_anew(cluster, count, queues=1)
            if is_strict:
                text = failure(query)
                assert "the topic was made anew" in text, text
                return
            wanted = set(each_once(ends(cluster.name_server)))
            until(lambda: wanted <= set(lines(tmp_path)) or query.exception(), lambda: sorted(lines(tmp_path)))
            assert query.exception() is None
        finally:
            query.stop()


@pytest.mark.parametrize("options", [{}, {"tags": "A"}], ids=["all", "tag"])
@pytest.mark.parametrize("count", [6, 6000])
@pytest.mark.parametrize("is_strict", [True, False], ids=["strict", "careless"])
def test_a_topic_that_is_made_anew_after_a_batch_read_its_first_message_fails_the_query_or_is_read_anew(
    spark: SparkSession, tmp_path: Path, count: int, is_strict: bool, options: dict[str, str]
) -> None:
    with topics.cluster_in(tmp_path / "cluster", brokers=1) as cluster:
        topics.create(cluster, "orders", queues=1)
        given = options | {"failOnDataLoss": str(is_strict).lower()}
        query = begin(spark, cluster.name_server, tmp_path, realTime="10 seconds", **given)
        try:
            # offset 0 has no message before it, whose time would tell
            until(lambda: spark.sparkContext.statusTracker().getActiveJobsIds() or query.exception())
            topics.fill(cluster, 5000, "orders")
            until(lambda: len(lines(tmp_path)) > 100 or query.exception())
            make_anew(cluster, count, queues=1)
            if is_strict:
                text = failure(query)
                assert "the topic was made anew" in text, text
                return
            (tmp_path / "lines").unlink()
            wanted = set(each_once(ends(cluster.name_server)))
            if options:
                # every other message has the tag
                wanted = {place for place in wanted if place[2] % 2 == 0}
            until(lambda: wanted <= set(lines(tmp_path)) or query.exception(), lambda: len(lines(tmp_path)))
            assert query.exception() is None
        finally:
            query.stop()


def make_anew(cluster: EmbeddedCluster, count: int, queues: int = 2) -> None:
    with rmqfast.Admin(name_server=cluster.name_server) as admin:
        admin.topics.delete("orders")
    topics.create(cluster, "orders", queues=queues)
    topics.fill(cluster, count, "orders")


def until_committed(spark: SparkSession, cluster: EmbeddedCluster, directory: Path, **options: str) -> None:
    """A query that ends when it has read all."""
    query = begin(spark, cluster.name_server, directory, realTime="2 seconds", **options)
    try:
        until(lambda: committed(query, directory) == ends(cluster.name_server) or query.exception())
        assert query.exception() is None
    finally:
        query.stop()
    until(lambda: not spark.streams.active)


def test_each_message_comes_at_least_once_however_often_the_query_is_restarted(
    spark: SparkSession, tmp_path: Path
) -> None:
    with topics.cluster_in(tmp_path / "cluster", brokers=2) as cluster:
        topics.create(cluster, "orders", queues=2)
        for number in range(RESTARTS):
            # every other one is stopped in the middle of a batch, with rows that are not committed
            restarted(spark, cluster, tmp_path, waits_for_commit=number % 2 == 0)
        ended(begin(spark, cluster.name_server, tmp_path, availableNow=True))
        found = Counter(lines(tmp_path))
        wanted = each_once(ends(cluster.name_server))
    assert sum(wanted.values()) == 200 * RESTARTS
    assert found.keys() == wanted.keys()
    # what a batch that was cut off had, its successor repeats: no row comes with each restart
    assert max(found.values()) <= 3


def restarted(spark: SparkSession, cluster: EmbeddedCluster, directory: Path, *, waits_for_commit: bool) -> None:
    """A query that gets some new rows, and is stopped then."""
    before = len(lines(directory))
    query = begin(spark, cluster.name_server, directory, realTime="1 second")
    try:
        topics.fill(cluster, 200, "orders")
        until(lambda: len(lines(directory)) > before or query.exception())
        if waits_for_commit:
            until(lambda: committed(query, directory) == ends(cluster.name_server) or query.exception())
        assert query.exception() is None
    finally:
        query.stop()
    # its thread may outlive the call
    until(lambda: not spark.streams.active)


def committed(query: StreamingQuery, directory: Path) -> dict[tuple[str, int], int]:
    """Where the next query goes on."""
    progress = query.lastProgress
    # written behind the batch, while the next one runs
    if progress is None or not (directory / "checkpoint" / "commits" / str(progress["batchId"])).exists():
        return {}
    text = progress["sources"][0]["endOffset"]
    offsets = json.loads(text) if isinstance(text, str) else text
    queues = (offsets or {}).get("orders", {})
    return {(name, int(queue)): offset for name, by_queue in queues.items() for queue, offset in by_queue.items()}
