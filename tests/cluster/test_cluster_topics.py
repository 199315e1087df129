"""Scans of several topics, of all topics, and of topics that are hidden."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import rmqfast
from rmqfast import Message
from rmqfast.admin import Admin
from tests.cluster.rows import Row, rows_of, stored_rows
from tests.spark.live import topics
from tests.spark.live.topics import LiveCluster

pytestmark = pytest.mark.slow

COUNTS = {"orders": 120, "bills": 40, "%RETRY%cashiers": 8, "%DLQ%cashiers": 8}
USERS = ["orders", "bills"]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    """Topics of users, a retry topic, dead letters, a topic that nobody may read, and those of brokers."""
    directory = tmp_path_factory.mktemp("topics")
    with topics.cluster_in(directory) as cluster:
        for topic in ("orders", "bills", "%RETRY%cashiers", "%DLQ%cashiers"):
            topics.create(cluster, topic, queues=2)
        topics.create(cluster, "hidden", queues=1, perm=2)
        with rmqfast.Producer("tests", name_server=cluster.name_server) as producer:
            for topic in ("orders", "bills", "%RETRY%cashiers", "%DLQ%cashiers", "hidden"):
                for number in range(COUNTS.get(topic, 8)):
                    producer.send(Message(topic, b"%d" % number, tags="paid"))
        yield LiveCluster(cluster.name_server, directory)


@pytest.mark.parametrize(
    "given", [["bills", "orders"], ("bills",), "%RETRY%cashiers", ["%DLQ%cashiers", "bills"]], ids=str
)
def test_several_topics_are_one_scan(live: LiveCluster, given: str | list[str]) -> None:
    cluster = rmqfast.open_cluster(live.name_server)
    rows = rows_of(cluster.scan(given))
    assert rows == stored_rows(live.directory, given)
    assert len(rows) >= 8


def test_all_topics_are_those_of_users(live: LiveCluster) -> None:
    cluster = rmqfast.open_cluster(live.name_server)
    with Admin(name_server=live.name_server) as admin:
        hidden = {"%RETRY%cashiers", "%DLQ%cashiers", "hidden", "DefaultCluster", "TBW102"}
        assert hidden < set(admin.topics.all())
    assert sorted(cluster.topics()) == sorted(USERS)
    assert rows_of(cluster.scan()) == stored_rows(live.directory, USERS)
    assert cluster.table().count_rows() == sum(COUNTS[name] for name in USERS)


@pytest.mark.parametrize(
    "arguments",
    [
        {"start_offset": 3, "end_offset": 5},
        {"start_offset": {0: 3}, "end_offset": {1: 2}},
        {"tags": "paid", "queue_ids": [1]},
        {"tags": "refunded"},
    ],
    ids=str,
)
def test_arguments_hold_for_each_topic(live: LiveCluster, arguments: dict[str, Any]) -> None:
    rows = rows_of(rmqfast.open_cluster(live.name_server).scan(USERS, **arguments))
    assert rows == stored_rows(live.directory, USERS, **arguments)


def test_offsets_are_below_the_names_of_topics(live: LiveCluster) -> None:
    cluster = rmqfast.open_cluster(live.name_server)
    start: Any = {"orders": {"broker-a": {0: 29}}, "bills": {"*": {0: -1, 1: 9}}}

    def is_chosen(row: Row) -> bool:
        if row["topic"] == "bills":
            return bool(row["queue_id"] == 1 and row["queue_offset"] >= 9)
        return bool((row["broker_name"], row["queue_id"]) != ("broker-a", 0) or row["queue_offset"] >= 29)

    for given in (USERS, None):
        rows = rows_of(cluster.scan(given, start_offset=start))
        assert rows == [row for row in stored_rows(live.directory, USERS) if is_chosen(row)]


def test_sql_names_topics(live: LiveCluster) -> None:
    messages = rmqfast.open_cluster(live.name_server).table()
    query = "select topic, count(*) from messages where topic in ('bills', 'nothing') group by all"
    found = duckdb.connect().register("messages", messages).execute(query)
    assert found.fetchall() == [("bills", COUNTS["bills"])]
