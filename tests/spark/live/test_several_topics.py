"""Several topics in one read of both sources: by name, by a pattern, queue by queue."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rmqfast
from rmqfast import EmbeddedCluster
from rmqfast.spark import read_topic
from tests.spark.conftest import has_filters, plan
from tests.spark.engines import HAS_PYTHON_SOURCES, JVM, PYTHON, said
from tests.spark.live import topics
from tests.spark.live.streams import ended, failure, write
from tests.spark.live.test_topic_stream import ends
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.spark

Place = tuple[str, str, int, int]
#: Messages by topic; queues in turn, so that each of the four has a quarter.
COUNTS = {"orders-eu": 400, "orders-us": 80, "bills": 40}
PLACE = ("topic", "broker_name", "queue_id", "queue_offset")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """Three topics, of two queues on each of two brokers; no test writes to them."""
    with topics.cluster_in(tmp_path_factory.mktemp("several")) as started:
        for topic, count in COUNTS.items():
            topics.create(started, topic, queues=2)
            topics.send(started, count, topic)
        # a pattern leaves out what nobody may read
        topics.create(started, "orders-hidden", queues=1, perm=2)
        yield started


def load(spark: SparkSession, engine: str, cluster: EmbeddedCluster, **options: str) -> DataFrame:
    return spark.read.format(engine).options(nameServer=cluster.name_server, **options).load()


def each(cluster: EmbeddedCluster, *names: str) -> Counter[Place]:
    """Each message of topics once."""
    return Counter(
        (name, *queue, offset)
        for name in names
        for queue, end in ends(cluster.name_server, name).items()
        for offset in range(end)
    )


def places(frame: DataFrame) -> Counter[Place]:
    return Counter((row[0], row[1], row[2], row[3]) for row in frame.select(*PLACE).collect())


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"subscribe": "bills,orders-us"}, ("bills", "orders-us")),
        ({"subscribe": '["orders-eu"]'}, ("orders-eu",)),
        ({"subscribePattern": "orders-.*"}, ("orders-eu", "orders-us")),
        # neither the topics of brokers and clusters, nor those of RocketMQ
        ({"subscribePattern": ".*"}, ("bills", "orders-eu", "orders-us")),
        ({"subscribePattern": "orders"}, ()),
    ],
    ids=str,
)
def test_a_batch_has_the_rows_of_its_topics(
    spark: SparkSession, engine: str, cluster: EmbeddedCluster, options: dict[str, str], names: tuple[str, ...]
) -> None:
    assert places(load(spark, engine, cluster, **options)) == each(cluster, *names)


def test_a_batch_has_the_queues_that_are_assigned(spark: SparkSession, engine: str, cluster: EmbeddedCluster) -> None:
    wanted = {"orders-eu": {"broker-a": [1], "broker-b": [0, 1]}, "bills": {"broker-a": [0]}}
    found = places(load(spark, engine, cluster, assign=json.dumps(wanted)))
    assert found == Counter(place for place in each(cluster, *wanted) if place[2] in wanted[place[0]].get(place[1], []))
    # a queue of the topic, but none that is read
    offsets = {"bills": {"broker-a": {"1": 1}}}
    frame = load(spark, engine, cluster, assign=json.dumps(wanted), startingOffsets=json.dumps(offsets))
    with pytest.raises(Exception, match="no queue 1 on broker broker-a; its queues are 0"):
        frame.collect()
    for problem, queues in (
        ("topic bills: no queue 2 on broker broker-a; its queues are 0, 1", {"bills": {"broker-a": [0, 2]}}),
        ("topic bills: no queue 0 on broker broker-c; its queues are none", {"bills": {"broker-c": [0]}}),
    ):
        with pytest.raises(Exception, match="ArgumentError") as caught:
            load(spark, engine, cluster, assign=json.dumps(queues))
        assert said(caught.value) == f"ArgumentError: assign: {problem}"


def test_offsets_bound_each_topic(spark: SparkSession, engine: str, cluster: EmbeddedCluster) -> None:
    start = {"bills": {"*": {"0": 8}}, "orders-us": {"broker-a": {"0": -1}}}
    end = {"orders-us": {"*": {"0": 5, "1": 5}}}
    frame = load(
        spark,
        engine,
        cluster,
        subscribe="bills,orders-us",
        startingOffsets=json.dumps(start),
        endingOffsets=json.dumps(end),
    )
    found = Counter((topic, queue) for topic, _, queue, _ in places(frame).elements())
    assert found == {("bills", 0): 4, ("bills", 1): 20, ("orders-us", 0): 5, ("orders-us", 1): 10}
    with pytest.raises(Exception, match="'orders-eu' is not read") as caught:
        load(spark, engine, cluster, subscribe="bills,orders-us", startingOffsets='{"orders-eu": {}}')
    assert said(caught.value).startswith(
        "ArgumentError: startingOffsets: 'orders-eu' is not read; expected offsets of topics bills, orders-us as "
    )


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        ("topic = 'bills'", ("bills",)),
        ("topic IN ('bills', 'orders-us', 'x')", ("bills", "orders-us")),
        ("topic = 'orders-eu' AND broker_name = 'broker-a' AND queue_offset < 7", ("orders-eu",)),
        ("topic IN ('x', 'y')", ()),
    ],
)
@pytest.mark.parametrize("options", [{"subscribe": ",".join(COUNTS)}, {"subscribePattern": ".*"}], ids=str)
def test_a_filter_on_topics_chooses_what_is_read(  # noqa: PLR0917
    spark: SparkSession,
    engine: str,
    cluster: EmbeddedCluster,
    capsys: pytest.CaptureFixture[str],
    options: dict[str, str],
    condition: str,
    names: tuple[str, ...],
) -> None:
    if engine == PYTHON and not has_filters():
        pytest.skip("this PySpark pushes no filters")
    frame = load(spark, engine, cluster, **options, pushdown="true").where(condition)
    assert "Filter (" not in plan(frame, capsys)
    wanted = each(cluster, *names)
    if "queue_offset" in condition:
        wanted = Counter(place for place in wanted if place[1] == "broker-a" and place[3] < 7)
    assert places(frame) == wanted
    if engine == JVM:
        counted = frame.selectExpr("count(*)", "min(queue_offset)", "max(queue_offset)")
        assert "LocalTableScan [listed_0" in plan(counted, capsys)
        offsets = [place[3] for place in wanted]
        expected = (len(offsets), min(offsets), max(offsets)) if offsets else (0, None, None)
        assert tuple(counted.collect()[0]) == expected


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"subscribe": "orders-us,bills"}, "topics bills, orders-us at "),
        ({"subscribePattern": "orders-.*"}, "topics like 'orders-.*' at "),
        ({"assign": '{"bills": {"broker-a": [0, 1]}}'}, "queues of bills broker-a: 0 1 at "),
    ],
    ids=str,
)
def test_a_plan_names_its_topics(
    spark: SparkSession,
    cluster: EmbeddedCluster,
    capsys: pytest.CaptureFixture[str],
    options: dict[str, str],
    words: str,
) -> None:
    assert f"rocketmq-columnar {words}{cluster.name_server}" in plan(load(spark, JVM, cluster, **options), capsys)


@pytest.mark.parametrize("by", ["columnar", "arrow"])
def test_read_topic_takes_several(spark: SparkSession, cluster: EmbeddedCluster, by: Any) -> None:
    frame = read_topic(
        spark,
        cluster.name_server,
        ["bills", "orders-eu"],
        end_offset={"orders-eu": {"*": {0: 3, 1: 0}}},
        engine=by,
        columns=["topic", "queue_id"],
    )
    found = Counter((row.topic, row.queue_id) for row in frame.collect())
    assert found == {("bills", 0): 20, ("bills", 1): 20, ("orders-eu", 0): 6}


def stream(spark: SparkSession, engine: str, cluster: EmbeddedCluster, **options: str) -> DataFrame:
    given = {"nameServer": cluster.name_server, "startingOffsets": "earliest"} | options
    return spark.readStream.format(engine).options(**given).load()


def stored(spark: SparkSession, directory: Path) -> Counter[Place]:
    return places(spark.read.parquet(str(directory / "out")))


def checkpoint(directory: Path) -> Any:
    """The offsets behind the last batch, as Spark stored them, without the store times beside them."""
    batches = [path for path in (directory / "checkpoint" / "offsets").iterdir() if path.name.isdigit()]
    newest = max(batches, key=lambda path: int(path.name))
    offsets = json.loads(newest.read_text().splitlines()[-1])
    # a member of a broker's name and times is empty
    return {topic: {broker: at for broker, at in of_topic.items() if at} for topic, of_topic in offsets.items()}


@pytest.mark.long
@pytest.mark.parametrize("order", [(PYTHON, JVM, PYTHON), (JVM, JVM, JVM)], ids=lambda order: order[0])
def test_a_stream_of_one_topic_goes_on_with_more(spark: SparkSession, tmp_path: Path, order: tuple[str, ...]) -> None:
    if not HAS_PYTHON_SOURCES and PYTHON in order:
        pytest.skip("PySpark 3.5 has no data sources in Python")
    with topics.cluster_in(tmp_path / "cluster") as cluster:
        for topic in ("bills", "orders"):
            topics.create(cluster, topic, queues=2)
            topics.fill(cluster, 200, topic)
        several = {"subscribe": "orders,bills", "maxOffsetsPerTrigger": "150"}
        for engine, options in zip(order, ({"topic": "orders"}, several, several), strict=True):
            query = ended(write(stream(spark, engine, cluster, **options), tmp_path))
            assert query.exception() is None
            topics.fill(cluster, 60, "orders")
            topics.fill(cluster, 40, "bills")
        query = ended(write(stream(spark, order[0], cluster, **several), tmp_path))
        assert stored(spark, tmp_path) == each(cluster, "bills", "orders")
        offsets = {topic: ends(cluster.name_server, topic) for topic in ("bills", "orders")}
        assert query.exception() is None
        assert checkpoint(tmp_path) == {
            topic: {
                broker: {str(queue): of_topic[broker, queue] for queue in (0, 1)} for broker in ("broker-a", "broker-b")
            }
            for topic, of_topic in offsets.items()
        }
        assert list(checkpoint(tmp_path)) == ["bills", "orders"]
        foreign = failure(write(stream(spark, order[0], cluster, topic="orders"), tmp_path))
        assert "checkpoint: 'bills' is not read; expected offsets of topic orders as" in foreign


@pytest.mark.long
def test_a_stream_of_a_pattern_waits_for_topics_and_reads_new_ones_from_their_first_message(
    spark: SparkSession, engine: str, tmp_path: Path
) -> None:
    with topics.cluster_in(tmp_path / "cluster") as cluster:
        topics.create(cluster, "bills", queues=1)
        topics.fill(cluster, 10, "bills")
        frame = stream(spark, engine, cluster, subscribePattern="orders-.*", startingOffsets="latest")
        query = write(frame, tmp_path, processingTime="100 milliseconds")
        try:
            until(lambda: query.recentProgress or not query.isActive, patience=300)
            for names in (("orders-eu",), ("orders-eu", "orders-us")):
                topics.create(cluster, names[-1], queues=2)
                topics.fill(cluster, 100, names[-1])
                until_stored(spark, query, tmp_path, each(cluster, *names))
        finally:
            query.stop()
        topics.fill(cluster, 50, "orders-eu")
        ended(write(frame, tmp_path))
        assert stored(spark, tmp_path) == each(cluster, "orders-eu", "orders-us")


def until_stored(spark: SparkSession, query: StreamingQuery, directory: Path, wanted: Counter[Place]) -> None:
    """Waits for these messages in the output of a query that runs."""

    def is_stored() -> bool:
        # before the first batch there is no file to take the schema from
        is_begun = any((directory / "out").glob("*.parquet"))
        return (is_begun and stored(spark, directory) == wanted) or not query.isActive

    until(is_stored, patience=300)
    assert query.exception() is None


@pytest.mark.long
def test_a_group_has_the_offsets_of_each_topic(spark: SparkSession, engine: str, tmp_path: Path) -> None:
    with topics.cluster_in(tmp_path / "cluster") as cluster:
        for topic in ("bills", "orders"):
            topics.create(cluster, topic, queues=2)
            topics.fill(cluster, 100, topic)
        frame = stream(spark, engine, cluster, subscribe="bills,orders", group="lake", commitOffsets="true")
        ended(write(frame, tmp_path))
        before = {topic: ends(cluster.name_server, topic) for topic in ("bills", "orders")}
        # Spark tells of a batch when the next one begins
        topics.fill(cluster, 4, "bills")
        ended(write(frame, tmp_path))
        with rmqfast.Admin(name_server=cluster.name_server) as admin:
            for topic, of_topic in before.items():
                rows = {(row.broker_name, row.queue_id): row for row in admin.groups.progress("lake", topic)}
                assert sorted(rows) == sorted(of_topic)
                assert all(rows[queue].consumer_offset >= end for queue, end in of_topic.items()), rows


@pytest.mark.long
@pytest.mark.newest
def test_the_progress_tells_how_far_each_queue_is_behind(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    frame = stream(spark, JVM, cluster, subscribe="bills,orders-us", maxOffsetsPerTrigger="60")
    query = ended(write(frame, tmp_path))
    found = [progress["sources"][0]["metrics"] for progress in query.recentProgress]
    first, last = found[0], found[-1]
    queues = {name for name in last if name.startswith("behind.")}
    assert queues == {f"behind.{t}.broker-{b}.{q}" for t in ("bills", "orders-us") for b in "ab" for q in (0, 1)}
    assert sum(int(first[name]) for name in queues) == 60
    assert all(last[name] == "0" for name in queues)
