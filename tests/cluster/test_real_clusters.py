"""The same code reads a store, a cluster in this process and RocketMQ's own: the same rows, column by column."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

import rmqfast
from rmqfast import Message
from rmqfast.errors import UnknownTopicError
from tests.client.ranges.clusters import RestartableCluster
from tests.cluster.rows import Row, by_place, rows_of
from tests.interop.rocketmq import PATIENT, RocketMQ
from tests.spark.live.topics import CONFIG
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

COUNT = 3000
TAGS = ("Aa", "BB", "C", None)
PROPERTIES = ("enablePropertyFilter=true", "mappedFileSizeCommitLog=8388608", *PATIENT)


@dataclass(frozen=True)
class Broker:
    """A running broker, its name server, and where its store is."""

    running: RestartableCluster | RocketMQ
    name_server: str
    store: Path

    def restart(self) -> None:
        if isinstance(self.running, RocketMQ):
            self.running.kill9()
        else:
            self.running.stop()
        self.running.start()


@contextmanager
def started(kind: str, directory: Path) -> Iterator[Broker]:
    if kind == "embedded":
        with RestartableCluster(directory, **CONFIG) as cluster:
            cluster.create("orders", 4)
            yield Broker(cluster, cluster.name_server, directory)
        return
    with RocketMQ(kind, directory, *PROPERTIES, heap="-Xms256m -Xmx512m", clean=False) as real:
        real.create_topic("orders", 4)
        yield Broker(real, real.name_server, real.store)


KINDS = [
    "embedded",
    pytest.param("4.9.4", marks=[pytest.mark.long, pytest.mark.real]),
    pytest.param("5.3.3", marks=pytest.mark.long),
    pytest.param("5.5.0", marks=pytest.mark.long),
]


@pytest.fixture(scope="module", params=KINDS)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker with messages of all kinds in the topic `orders`."""
    with started(request.param, tmp_path_factory.mktemp("broker")) as running:
        with rmqfast.Producer("tests", name_server=running.name_server) as producer:
            producer.send_many([message(number) for number in range(COUNT)])
            producer.send(Message("orders", b"x" * 8000, tags="compressed"))
        opened = rmqfast.open_cluster(running.name_server)
        # a broker lists a message a moment after it took it
        until(lambda: opened.scan("orders").count() == COUNT + 1)
        yield running


def message(number: int) -> Message:
    properties = {"n": str(number), "region": ("eu", "us")[number % 2]}
    keys = f"k{number}" if number % 3 else None
    return Message("orders", b"%d" % number * 50, tags=TAGS[number % 4], keys=keys, properties=properties)


def both(broker: Broker) -> Iterator[rmqfast.MessageStore | rmqfast.MessageCluster]:
    cluster = rmqfast.open_cluster(broker.name_server)
    [name] = cluster.topics()["orders"]
    with rmqfast.open_store(broker.store, broker_name=name) as store:
        yield store
    yield cluster


ARGUMENTS: dict[str, dict[str, Any]] = {
    "all": {},
    "tags": {"tags": "Aa || compressed"},
    "sql and tags": {"sql": "n BETWEEN 100 AND 900", "tags": "BB || C"},
    "keys": {"keys": [f"k{number}" for number in range(100)]},
    "a prefix of keys": {"keys_prefix": "k12"},
    "queue": {"queue_ids": 1, "columns": ["topic", "broker_name", "queue_id", "queue_offset", "body"]},
    "offsets": {"start_offset": 7, "end_offset": {0: 30, 1: 40}},
    "crc": {"verify_crc": True, "property_names": ["region"]},
    "threads": {"threads": 2},
}


@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS)
def test_a_store_and_its_broker_have_the_same_rows(broker: Broker, arguments: dict[str, Any]) -> None:
    stored, live = (rows_of(opened.scan("orders", **arguments)) for opened in both(broker))
    assert live == stored
    assert len(live) > 10


def test_times_choose_the_same(broker: Broker) -> None:
    times = sorted(row["store_timestamp"] for row in rows_of(rmqfast.open_cluster(broker.name_server).scan("orders")))
    bounds = {"start_time": times[COUNT // 4], "end_time": times[COUNT // 2]}
    stored, live = (rows_of(opened.scan("orders", **bounds)) for opened in both(broker))
    assert live == stored


QUERIES = [
    "select topic, tags, count(*), min(queue_offset), max(queue_offset) from orders group by all order by all",
    "select count(*) from orders where tags = 'Aa' and queue_offset >= 100",
    "select queue_id, queue_offset, body from orders where queue_offset < 5 order by all",
    "select count(*) from orders where store_timestamp > now() - interval 3 hours",
    "select count(*) from orders where store_timestamp > now() + interval 3 hours",
    "select count(*) from orders where properties['region'] = 'eu'",
]


@pytest.mark.parametrize("query", QUERIES)
def test_sql_answers_the_same(broker: Broker, query: str) -> None:
    answers = []
    for opened in both(broker):
        connection = duckdb.connect().register("orders", opened.table("orders"))
        answers += [connection.execute(query).fetchall() for _ in range(2)]
    assert answers == [answers[0]] * 4
    assert answers[0]


def test_the_topics_of_users_are_listed(broker: Broker) -> None:
    cluster = rmqfast.open_cluster(broker.name_server)
    assert list(cluster.topics()) == ["orders"]
    assert cluster.scan().count() == COUNT + 1
    with pytest.raises(UnknownTopicError, match="unknown topic 'order' at the name server; did you mean orders"):
        cluster.scan("order")


def test_the_queues_of_a_topic_are_listed(broker: Broker) -> None:
    [queues] = rmqfast.open_cluster(broker.name_server).topics()["orders"].values()
    assert sorted(queues) == [0, 1, 2, 3]
    assert sum(end - first for first, end in queues.values()) == COUNT + 1


def test_ends_are_fixed_and_a_killed_broker_gives_the_rest_when_it_is_back(broker: Broker) -> None:
    cluster = rmqfast.open_cluster(broker.name_server, retry_timeout=300)
    scan = cluster.scan("orders", batch_rows=10)
    before: list[Row] = rows_of(scan)
    with rmqfast.Producer("tests", name_server=broker.name_server) as producer:
        producer.send_many([message(number) for number in range(40)])
    batches = scan.batches()
    found: list[Row] = next(batches).to_pylist()
    broker.restart()
    for batch in batches:
        found += batch.to_pylist()
    assert by_place(found) == before


@pytest.mark.parametrize("via", ["log", "auto"])
def test_logs_have_the_same_rows(broker: Broker, via: rmqfast.cluster.Via) -> None:
    cluster = rmqfast.open_cluster(broker.name_server, retry_timeout=300)
    assert rows_of(cluster.scan("orders", tags="Aa", via=via)) == rows_of(cluster.scan("orders", tags="Aa"))
