"""`Scan.explain` of a cluster: fixed offsets, ways and filters, told without asking a broker."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

import rmqfast
from rmqfast.cluster import MessageCluster
from tests.cli.command_line import run
from tests.cluster.rows import rows_of
from tests.spark.live import topics
from tests.spark.live.log_server import LogServer
from tests.spark.live.topics import LiveCluster

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveCluster, LogServer]]:
    """A cluster of one broker whose log is served, and by whom."""
    directory = tmp_path_factory.mktemp("explained")
    with LogServer() as server, topics.cluster_in(directory, 1, haListenPort=str(server.port)) as cluster:
        for topic in ("orders", "others"):
            topics.create(cluster, topic)
        topics.send(cluster, 1200)
        topics.fill(cluster, 2000, "others")
        server.directory = directory
        yield LiveCluster(cluster.name_server, directory), server


@pytest.fixture
def cluster(served: tuple[LiveCluster, LogServer]) -> MessageCluster:
    return rmqfast.open_cluster(served[0].name_server)


def test_queues_and_offsets_are_those_of_the_cluster(cluster: MessageCluster) -> None:
    scan = cluster.scan("orders")
    explanation = scan.explain()
    ends = {
        (broker, queue): bounds
        for broker, queues in cluster.topics()["orders"].items()
        for queue, bounds in queues.items()
    }
    ranges = {(each.broker_name, each.queue_id): each[3:] for piece in explanation.pieces for each in piece.queues}
    assert ranges == {queue: (start, end) for queue, (start, end) in ends.items() if start < end}
    assert (explanation.messages, explanation.messages_are) == (1200, "exact")
    assert {piece.way for piece in explanation.pieces} == {"pull"}
    assert explanation.log_bytes is None
    assert all(piece.address for piece in explanation.pieces)
    assert pickle.loads(pickle.dumps(scan)).explain() == explanation  # noqa: S301 - written here


@pytest.mark.parametrize(
    "arguments",
    [
        {"tags": "paid"},
        {"start_offset": 3, "end_offset": 9},
        {"queue_ids": [0, 2], "keys": ["key-1"]},
        {"sql": "number > 100", "threads": 4},
        {"end_time": "2001-01-01"},
        {"tags": "paid", "via": "log"},
    ],
    ids=str,
)
def test_messages_are_bounded_and_filters_told(cluster: MessageCluster, arguments: dict[str, Any]) -> None:
    scan = cluster.scan("orders", **arguments)
    explanation, rows = scan.explain(), len(rows_of(scan))
    assert explanation.messages is not None
    assert rows <= explanation.messages
    assert explanation.messages_are != "exact" or rows == explanation.messages
    assert {used.name for used in explanation.filters} == ({"topic"} | set(arguments)) - {"threads", "via"}
    assert scan.limit(1).explain().messages in {0, 1}


def test_a_log_is_told_with_its_range(served: tuple[LiveCluster, LogServer], cluster: MessageCluster) -> None:
    explanation = cluster.scan("orders", via="log").explain()
    assert {piece.way for piece in explanation.pieces} == {"log"}
    assert all(piece.begin is not None and piece.end is not None for piece in explanation.pieces)
    by_cost = cluster.scan("orders", via="auto").explain()
    assert all(piece.reason == "pulled, as it is little" for piece in by_cost.pieces), str(by_cost)


def test_an_explanation_asks_nobody(served: tuple[LiveCluster, LogServer], cluster: MessageCluster) -> None:
    scan = cluster.scan("orders", via="log")
    served[1].asked.clear()
    scan.explain()
    assert not served[1].asked


def test_the_command_prints_it(served: tuple[LiveCluster, LogServer]) -> None:
    result = run("scan", "orders", "-n", served[0].name_server, "--explain")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("messages:  1,200\n"), result.stdout
    assert "\nqueue:     orders 0 of broker-" in result.stdout
