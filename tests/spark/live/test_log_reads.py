"""Reads of topics out of a broker's log: rows are those of pulls, whatever else the log has, and whoever serves it."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rmqfast import Admin, EmbeddedCluster, Message, Producer
from rmqfast._native import TopicRead, read_piece
from rmqfast.client.instance import ClientConfig
from rmqfast.remoting import RemotingClient, RequestCode
from rmqfast.remoting.fastjson import decode
from rmqfast.spark import read_topic
from rmqfast.spark.live.task import read_topic_piece
from rmqfast.store import COLUMNS
from tests.spark.conftest import plan
from tests.spark.engines import JVM
from tests.spark.in_process import Row, rows_in
from tests.waiting import until

from . import topics
from .log_server import Frames, LogServer
from .test_equal_rows import BOTH, PLACE, options_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = 1200
PLACES = "topic,queue_id,queue_offset,tags,body"
BY_TAGS = {name: arguments for name, arguments in BOTH.items() if "sql" not in arguments}


@dataclass(frozen=True)
class Served:
    """A cluster of one broker whose log is served, and by whom."""

    name_server: str
    server: LogServer


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`orders` stands among messages of other topics; of `again` there are two lives, the first behind `bills`."""
    directory = tmp_path_factory.mktemp("logs")
    with LogServer() as server, topics.cluster_in(directory, 1, haListenPort=str(server.port)) as embedded:
        for topic in ("again", "bills", "orders", "others"):
            topics.create(embedded, topic)
        topics.fill(embedded, 40, "bills")
        topics.fill(embedded, 300, "again", b"of the first life")
        topics.send(embedded, COUNT // 2)
        topics.fill(embedded, 2000, "others")
        with Admin(name_server=embedded.name_server) as admin:
            admin.topics.delete("again", cluster="DefaultCluster")
        topics.send(embedded, COUNT, first=COUNT // 2)
        topics.create(embedded, "again")
        topics.fill(embedded, 40, "again", b"of the second life")
        server.directory = directory
        yield Served(embedded.name_server, server)


@pytest.fixture
def served(cluster: Served) -> Iterator[Served]:
    """With a server that has not been asked."""
    cluster.server.asked.clear()
    yield cluster
    cluster.server.spoil = None


def read_of(served: Served, **options: str) -> TopicRead:
    return TopicRead("topic batch", {"nameServer": served.name_server, "subscribe": "orders"} | options, COLUMNS)


def rows_of(read: TopicRead) -> tuple[list[Row], list[list[Any]]]:
    """The rows of all pieces, and how each broker was read."""
    pieces, ways = read.plan_with_ways()
    batches = (batch for piece in pieces for batch in read_topic_piece(read, piece))
    return sorted(rows_in(batches), key=itemgetter("topic", *PLACE)), json.loads(ways)


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What readers log; the cluster of this process logs of its own."""
    names = ("rmqfast.client.ranges", "rmqfast.spark")
    return [record.getMessage() for record in caplog.records if record.name in names]


@pytest.mark.parametrize("arguments", BY_TAGS.values(), ids=BY_TAGS)
def test_rows_are_those_of_pulls(served: Served, arguments: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    options = options_of({name: value for name, value in arguments.items() if name != "columns"})
    pulled, _ = rows_of(read_of(served, **options))
    assert not served.server.asked
    rows, ways = rows_of(read_of(served, via="log", **options))
    assert ways == [["broker-a", None]]
    assert len(rows) > 50
    assert rows == pulled
    assert served.server.asked
    assert not told(caplog)


@pytest.mark.parametrize("topic", ["again", "again,bills", "again,orders,bills", "others"])
def test_messages_of_a_deleted_topic_are_not_those_of_the_new_one(
    served: Served, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    pulled, _ = rows_of(read_of(served, subscribe=topic))
    assert rows_of(read_of(served, subscribe=topic, via="log")) == (pulled, [["broker-a", None]])
    assert b"of the first life" not in {row["body"] for row in pulled}
    assert not told(caplog)


def test_a_read_is_cut_into_four_pieces_at_most_which_have_each_offset_once(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    read = read_of(served, via="log", minPartitions="9", subscribe="orders,others")
    pieces = read.plan()
    assert len(pieces) == 4
    edges: dict[tuple[str, int], list[int]] = {}
    for topic, _, queue, *bounds in sorted(one for piece in pieces for one in read_piece(piece)[1]):
        edges.setdefault((topic, queue), []).extend(bounds)
    for own in edges.values():
        assert own[1:-1:2] == own[2:-1:2]
    rows, _ = rows_of(read)
    assert rows == rows_of(read_of(served, subscribe="orders,others"))[0]
    assert len(served.server.asked) == 4
    assert not told(caplog)


def test_offsets_that_are_named(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    start, end = ({"orders": {"*": {str(queue): at for queue in range(4)}}} for at in (100, 301))
    options = {"startingOffsets": json.dumps(start), "endingOffsets": json.dumps(end)}
    rows, _ = rows_of(read_of(served, via="log", **options))
    assert len(rows) == 804
    assert rows == rows_of(read_of(served, **options))[0]
    assert not told(caplog)


def closed_often(served: Frames) -> Frames:
    """As a master that ends each connection soon."""
    return islice(served, 5)


def test_a_connection_that_ends_behind_some_records_is_opened_again(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    pulled, _ = rows_of(read_of(served))
    served.server.spoil = closed_often
    assert rows_of(read_of(served, via="log"))[0] == pulled
    assert len(served.server.asked) > 5
    assert not told(caplog)


def nothing(served: Frames) -> Frames:
    return islice(served, 0)


def another_place(served: Frames) -> Frames:
    yield from islice(served, 4)
    yield struct.pack(">qi", 12345, 100) + bytes(100)


def huge(served: Frames) -> Frames:
    yield from islice(served, 4)
    yield struct.pack(">qi", 0, -1)


def other_body(served: Frames) -> Frames:
    """One byte of a body."""
    for part in served:
        yield part.replace(b"x" * 100, b"x" * 50 + b"y" + b"x" * 49, 1)


def zeroes(served: Frames) -> Frames:
    for number, part in enumerate(served):
        yield part if number < 6 else part[:12] + bytes(len(part) - 12)


@pytest.mark.parametrize("spoil", [nothing, another_place, huge, other_body, zeroes])
def test_what_is_no_sound_log_is_pulled(served: Served, spoil: Any, caplog: pytest.LogCaptureFixture) -> None:
    pulled, _ = rows_of(read_of(served))
    served.server.spoil = spoil
    rows, ways = rows_of(read_of(served, via="log"))
    assert ways == [["broker-a", None]]
    assert rows == pulled
    (message,) = told(caplog)
    assert message.startswith("broker broker-a: its log is not read on, the rest is pulled: ")


def test_a_log_that_is_another_one_is_not_taken_for_it(
    served: Served, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As where an address leads to another broker, whose records have the same places, queues and offsets."""
    read = read_of(served, subscribe="bills", via="log")
    pulled, _ = rows_of(read)
    with topics.cluster_in(tmp_path, 1) as other:
        topics.create(other, "bills")
        topics.fill(other, 40, "bills", b"y" * 100)
        served.server.directory, own = tmp_path, served.server.directory
        rows, _ = rows_of(read)
        served.server.directory = own
    assert rows == pulled
    (message,) = told(caplog)
    assert "the rest is pulled: the log is another one: its first record has " in message


def test_where_nobody_listens_it_is_pulled(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        with topics.cluster_in(tmp_path, 1, haListenPort=str(port)) as embedded:
            topics.create(embedded, "orders")
            topics.send(embedded, 50)
            options = {"nameServer": embedded.name_server, "subscribe": "orders", "via": "log"}
            rows, _ = rows_of(TopicRead("topic batch", options, COLUMNS))
    assert len(rows) == 50
    assert f"the rest is pulled: 127.0.0.1:{port}: " in told(caplog)[0]


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"brokerRole": "SYNC_MASTER"}, "it is a SYNC_MASTER: who reads its log may count as a slave"),
        ({"enableControllerMode": "true"}, "controller mode: its replicas speak another protocol"),
    ],
)
def test_brokers_whose_log_is_not_for_readers_are_pulled(tmp_path: Path, config: dict[str, str], reason: str) -> None:
    with topics.cluster_in(tmp_path, 1, **config) as embedded:
        topics.create(embedded, "orders")
        topics.send(embedded, 5)
        options = {"nameServer": embedded.name_server, "subscribe": "orders", "via": "log"}
        rows, ways = rows_of(TopicRead("topic batch", options, COLUMNS))
    assert len(rows) == 5
    assert ways[0][1].startswith(reason)


def test_a_broker_that_became_a_sync_master_since_is_pulled(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with LogServer() as server:
        config = {"haListenPort": str(server.port)}
        with topics.cluster_in(tmp_path, 1, **config) as embedded:
            topics.create(embedded, "orders")
            topics.send(embedded, 5)
            (piece,) = read_of(Served(embedded.name_server, server), via="log").plan()
        with topics.cluster_in(tmp_path, 1, brokerRole="SYNC_MASTER") as embedded:
            read = read_of(Served(embedded.name_server, server), via="log")
            assert len(rows_in(read_topic_piece(read, piece))) == 5
        assert not server.asked
    assert any("the rest is pulled: it is a SYNC_MASTER" in message for message in told(caplog))


@pytest.fixture
def synced(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """A SYNC_MASTER and its slave, which have the same `orders`."""
    config = topics.CONFIG | {"brokerRole": "SYNC_MASTER"}
    with EmbeddedCluster(tmp_path, replicas=1, config=config) as embedded:
        topics.create(embedded, "orders")
        topics.send(embedded, COUNT)
        end = end_of(embedded.brokers[0].address)
        until(lambda: end_of(embedded.slaves[0].address) >= end)
        yield embedded


def end_of(address: str) -> int:
    """Where a broker's log ends."""
    with RemotingClient(address) as client:
        return int(decode(client.ask(RequestCode.GET_BROKER_RUNTIME_INFO, {}).body)["table"]["commitLogMaxOffset"])


def served_at(piece: bytes) -> list[str]:
    """Where a piece finds its log."""
    addresses: list[str] = json.loads(piece[1:])[3][0]
    return addresses


def test_a_sync_master_is_read_out_of_the_log_of_its_slave(
    synced: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    slave = synced.slaves[0]
    options = {"nameServer": synced.name_server, "subscribe": "orders"}
    pulled, _ = rows_of(TopicRead("topic batch", options, COLUMNS))
    read = TopicRead("topic batch", options | {"via": "log"}, COLUMNS)
    assert rows_of(read) == (pulled, [["broker-a", None]])
    assert not told(caplog)
    (piece,) = read.plan()
    assert served_at(piece) == [f"{slave.config.text('brokerIP1')}:{slave.config.number('haListenPort')}"]
    slave.stop()
    batches = read_topic_piece(read, piece)
    assert sorted(rows_in(batches), key=itemgetter("topic", *PLACE)) == pulled
    assert any("the rest is pulled: " in message for message in told(caplog))
    rows, ways = rows_of(read)
    assert rows == pulled
    assert ways[0][1].endswith("for which sends wait; no slave of it is known")


def test_a_slave_that_is_behind_is_not_read(synced: EmbeddedCluster, tmp_path: Path) -> None:
    """Another broker takes its place at the name server, whose log has nothing."""
    synced.slaves[0].stop()
    with topics.cluster_in(tmp_path / "other", 1) as other, RemotingClient(synced.name_server) as client:
        address = other.brokers[0].address
        identity = {"brokerName": "broker-a", "brokerId": "1", "brokerAddr": address, "clusterName": "DefaultCluster"}
        fields = identity | {"haServerAddr": address, "compressed": "false", "bodyCrc32": "0"}
        client.ask(RequestCode.REGISTER_BROKER, fields)
        options = {"nameServer": synced.name_server, "subscribe": "orders", "via": "log"}
        rows, ways = rows_of(TopicRead("topic batch", options, COLUMNS))
    assert len(rows) == COUNT
    assert ways[0][1].startswith(f"its slave at {address} is behind: expected its log up to ")


def test_where_addresses_are_translated_it_is_pulled(served: Served) -> None:
    config = ClientConfig(name_server=served.name_server, translate_address=str)
    options = {"nameServer": served.name_server, "subscribe": "orders", "via": "log"}
    _, ways = rows_of(TopicRead("topic batch", options, COLUMNS, config=config))
    assert ways == [["broker-a", "translate_address does not tell where HA ports are"]]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"via": "log", "sql": "number > 10"}, "brokers filter by SQL92"),
        ({"via": "auto", "tags": "paid"}, "brokers send only those with the tags"),
        ({"via": "auto", "minPartitions": "5"}, "minPartitions is more than 4 connections to a log give"),
        ({"via": "auto"}, "it is little"),
    ],
)
def test_what_is_better_pulled_is_and_the_log_says_why(
    served: Served, options: dict[str, str], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    rows, ways = rows_of(read_of(served, **options))
    assert ways == [["broker-a", reason]]
    assert not served.server.asked
    assert rows == rows_of(read_of(served, **{name: text for name, text in options.items() if name != "via"}))[0]
    assert told(caplog) == [f"read by pulls of broker-a: {reason}"]


def test_a_broker_that_has_nothing_yet(tmp_path: Path) -> None:
    with LogServer() as server, topics.cluster_in(tmp_path, 1, haListenPort=str(server.port)) as embedded:
        topics.create(embedded, "orders")
        server.directory = tmp_path
        served = Served(embedded.name_server, server)
        assert rows_of(read_of(served, via="log")) == ([], [])
        with Producer("first", name_server=embedded.name_server) as producer:
            producer.send(Message("orders", b"the first record of all"))
        assert [row["body"] for row in rows_of(read_of(served, via="log"))[0]] == [b"the first record of all"]
        # a place of 0 would mean the last file
        assert server.asked == [1]


@pytest.mark.spark
def test_each_engine_reads_logs_whatever_filters_leave(spark: SparkSession, engine: str, served: Served) -> None:
    options = {"nameServer": served.name_server, "subscribe": "orders,others", "minPartitions": "3", "columns": PLACES}
    frame = spark.read.format(engine).options(**options, via="log").load()
    pulled = spark.read.format(engine).options(**options).load()
    for condition in ("true", "topic = 'others'", "queue_offset >= 100 AND queue_id < 2", "queue_offset < 300"):
        rows = sorted(frame.where(condition).collect())
        assert len(rows) > 100
        assert rows == sorted(pulled.where(condition).collect()), condition
    assert len(served.server.asked) >= 3


@pytest.mark.spark
def test_a_plan_tells_how_each_broker_is_read(
    spark: SparkSession, served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"nameServer": served.name_server, "subscribe": "orders"}
    source = spark.read.format(JVM).options(**options)
    name_server = served.name_server
    for by_log in (source.option("via", "log").load(), read_topic(spark, name_server, "orders", via="log")):
        assert ", by the log of broker-a" in plan(by_log, capsys)
        assert by_log.count() == COUNT + COUNT // 2
    for by_pulls in (source.option("via", "auto").load(), read_topic(spark, name_server, "orders", via="auto")):
        assert ", by pulls of broker-a: it is little" in plan(by_pulls, capsys)
    assert "broker-a" not in plan(source.option("via", "pull").load(), capsys)
