"""What only the JVM does with a topic: answers from queues alone, limits; and what a job that is cancelled leaves."""

from __future__ import annotations

import hashlib
import random
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rmqfast
from rmqfast import EmbeddedCluster, Message
from rmqfast.remoting import Request, RequestCode
from tests.spark.conftest import plan
from tests.spark.engines import HAS_PYTHON_SOURCES, JVM, PYTHON, said
from tests.spark.live.streams import ended, stream
from tests.spark.live.test_live_source import load
from tests.spark.live.topics import MESSAGES, LiveCluster
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

EACH = MESSAGES // 8


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    """A broker for topics of single tests."""
    with EmbeddedCluster() as started:
        yield started


def topic_of(spark: SparkSession, name_server: str, topic: str, **options: str) -> DataFrame:
    return spark.read.format(JVM).options(nameServer=name_server, topic=topic, **options).load()


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("true", (MESSAGES, 0, EACH - 1)),
        ("broker_name = 'broker-b' AND queue_id IN (1, 2) AND queue_offset >= 40", (2 * (EACH - 40), 40, EACH - 1)),
        ("queue_offset > 100000", (0, None, None)),
    ],
)
def test_queues_alone_tell_counts_and_extremes(
    spark: SparkSession,
    live_cluster: LiveCluster,
    capsys: pytest.CaptureFixture[str],
    condition: str,
    told: tuple[int | None, ...],
) -> None:
    asked = ["count(*)", "min(queue_offset)", "max(queue_offset)"]
    answer = load(spark, JVM, live_cluster).where(condition).selectExpr(*asked)
    assert "LocalTableScan [listed_0" in plan(answer, capsys)
    assert tuple(answer.collect()[0]) == told
    if HAS_PYTHON_SOURCES:
        assert tuple(load(spark, PYTHON, live_cluster).where(condition).selectExpr(*asked).collect()[0]) == told


@pytest.mark.parametrize("condition", ["tags = 'paid'", "store_timestamp > '2020-01-01'", "keys IS NOT NULL"])
def test_what_queues_do_not_list_is_counted_by_reading(
    spark: SparkSession, live_cluster: LiveCluster, capsys: pytest.CaptureFixture[str], condition: str
) -> None:
    frame = load(spark, JVM, live_cluster).where(condition)
    assert "LocalTableScan [listed_0" not in plan(frame.selectExpr("count(*)"), capsys)
    assert frame.count() == len(frame.select("queue_offset").collect()) > EACH


def test_a_limit_goes_into_the_scan(
    spark: SparkSession, live_cluster: LiveCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    limited = load(spark, JVM, live_cluster).where("tags = 'paid'").limit(10)
    assert "PushedLimit: 10" in plan(limited, capsys)
    assert [row.tags for row in limited.collect()] == ["paid"] * 10
    assert len(load(spark, JVM, live_cluster).take(2 * MESSAGES)) == MESSAGES


@pytest.fixture(scope="module")
def counted() -> Iterator[tuple[EmbeddedCluster, Counter[int]]]:
    """A cluster with ten messages in `orders`, and how often its broker got which request."""
    asked: Counter[int] = Counter()
    lock = threading.Lock()

    def count(request: Request) -> None:
        with lock:
            asked[request.code] += 1

    with EmbeddedCluster(check=count) as cluster:
        with rmqfast.Producer("tests", name_server=cluster.name_server) as producer:
            producer.send_many([Message("orders", b"x")] * 10)
        yield cluster, asked


def test_brokers_are_asked_once_for_a_query(spark: SparkSession, counted: tuple[EmbeddedCluster, Counter[int]]) -> None:
    """Spark would plan each query twice if partitions were to say whether they are columnar."""
    cluster, asked = counted
    frame = topic_of(spark, cluster.name_server, "orders")
    asked.clear()
    assert len(frame.collect()) == 10
    assert asked[RequestCode.GET_TOPIC_STATS_INFO] == 1


def test_a_batch_of_a_stream_is_planned_from_its_offsets_alone(
    spark: SparkSession, counted: tuple[EmbeddedCluster, Counter[int]], tmp_path: Path
) -> None:
    cluster, asked = counted
    found = []
    for most in (10, 2):
        frame = stream(spark, JVM, cluster.name_server, maxOffsetsPerTrigger=str(most))
        asked.clear()
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / str(most)))
        query = ended(writer.trigger(availableNow=True).start())
        batches = len([progress for progress in query.recentProgress if progress["numInputRows"]])
        found.append((batches, asked[RequestCode.GET_TOPIC_STATS_INFO]))
    (one, asked_for_one), (many, asked_for_many) = found
    assert (one, many) == (1, 5)
    assert asked_for_one == asked_for_many > 0


def test_a_job_that_is_cancelled_leaves_no_thread_and_no_connection(
    spark: SparkSession, live_cluster: LiveCluster
) -> None:
    frame = load(spark, JVM, live_cluster, maxRowsPerPartition="300")
    slow = frame.selectExpr("queue_offset", "reflect('java.lang.Thread', 'sleep', 1000L)")
    ended = threading.Event()
    # tasks before this one left connections to the next ones, for a minute
    ports = broker_ports(live_cluster)
    before = pullers(spark), connections(spark, ports)

    def run() -> None:
        spark.sparkContext.setJobGroup("slow", "to be cancelled", interruptOnCancel=True)
        with pytest.raises(Exception, match=r"(?i)cancel"):
            slow.collect()
        ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: active_tasks(spark, "slow") > 0)
    spark.sparkContext.cancelJobGroup("slow")
    until(ended.is_set)
    thread.join()
    until(lambda: pullers(spark) <= before[0])
    until(lambda: connections(spark, ports) <= before[1])


def active_tasks(spark: SparkSession, group: str) -> int:
    """Tasks of a job group that run."""
    status = spark.sparkContext.statusTracker()
    jobs = [status.getJobInfo(job) for job in status.getJobIdsForGroup(group)]
    stages = [status.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    return sum(stage.numActiveTasks for stage in stages if stage is not None)


def broker_ports(cluster: LiveCluster) -> set[int]:
    with rmqfast.Admin(name_server=cluster.name_server) as admin:
        return {int(row.address.rpartition(":")[2]) for row in admin.clusters.brokers()}


def jvm_process(spark: SparkSession) -> Path:
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no other way to its JVM
    return Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}")


def pullers(spark: SparkSession) -> int:
    """Threads that pull, in Spark's JVM."""
    return sum(name.startswith("rmqfast-puller") for name in threads(spark))


def threads(spark: SparkSession) -> list[str]:
    names = []
    for entry in (jvm_process(spark) / "task").iterdir():
        try:
            names.append((entry / "comm").read_text())
        except OSError:  # ended meanwhile
            continue
    return names


def connections(spark: SparkSession, ports: set[int]) -> int:
    """Connections of Spark's JVM to these ports of this machine."""
    process = jvm_process(spark)
    sockets = set()
    for link in (process / "fd").iterdir():
        try:
            sockets.add(link.readlink().name)
        except OSError:
            continue
    count = 0
    for table in ("tcp", "tcp6"):
        for line in (process / "net" / table).read_text().splitlines()[1:]:
            fields = line.split()
            port, inode = int(fields[2].rpartition(":")[2], 16), fields[9]
            count += port in ports and f"socket:[{inode}]" in sockets
    return count


def test_a_message_as_large_as_may_be(spark: SparkSession, cluster: EmbeddedCluster) -> None:
    body = random.Random(7).randbytes((4 << 20) - 4096)
    with rmqfast.Producer("tests", name_server=cluster.name_server) as producer:
        for each in (b"small", body, b"small"):
            producer.send(Message("large", each))
    found = topic_of(spark, cluster.name_server, "large").selectExpr("length(body) AS length", "sha2(body, 256) AS sha")
    wanted = [(len(each), hashlib.sha256(each).hexdigest()) for each in (b"small", b"small", body)]
    assert sorted(tuple(row) for row in found.collect()) == sorted(wanted)


def test_a_body_that_does_not_decompress_ends_the_job_or_is_null(spark: SparkSession, cluster: EmbeddedCluster) -> None:
    with rmqfast.Producer("tests", name_server=cluster.name_server) as producer:
        for body in (b"sound", b"x" * 9000, b"small"):
            producer.send(Message("packed", body, keys=body[:5].decode()))
    strict = topic_of(spark, cluster.name_server, "packed", maxBodyBytes="1000")
    with pytest.raises(Exception, match="CorruptError") as caught:
        strict.select("body").collect()
    assert said(caught.value).startswith("CorruptError: 1 bodies do not decompress"), said(caught.value)
    assert strict.count() == 3
    careless = topic_of(spark, cluster.name_server, "packed", maxBodyBytes="1000", failOnDataLoss="false")
    found = {row.keys: row.body and bytes(row.body) for row in careless.selectExpr("keys AS keys", "body").collect()}
    assert found == {"sound": b"sound", "small": b"small", "xxxxx": None}
