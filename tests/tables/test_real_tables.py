"""Tables of a broker's topic and of its store agree, while it takes messages and over a kill; also of RocketMQ."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import rmqfast
from tests.cluster.test_real_clusters import KINDS, Broker, message, started
from tests.tables.lakes import Lake
from tests.tables.stored_rows import by_place, scanned
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
COUNT = 3000


@contextmanager
def sending(broker: Broker, first: int) -> Iterator[threading.Thread]:
    """Sends messages beside the block."""

    def send() -> None:
        with rmqfast.Producer("tests", name_server=broker.name_server) as producer:
            for number in range(first, first + COUNT, 100):
                producer.send_many([message(each) for each in range(number, number + 100)])

    thread = threading.Thread(target=send)
    thread.start()
    yield thread
    thread.join()


@pytest.mark.parametrize("kind", KINDS)
def test_a_topic_and_its_store_become_the_same_table(kind: str, tmp_path: Path) -> None:
    pulled, read = Lake(tmp_path / "pulled", "iceberg"), Lake(tmp_path / "read", "delta")
    with started(kind, tmp_path / "broker") as broker:
        cluster = rmqfast.open_cluster(broker.name_server)

        def ingest() -> tuple[int, int]:
            return pulled.ingest(cluster, ["orders"]).rows, read.ingest(broker.store, ["orders"]).rows

        with sending(broker, 0) as sender:
            # the first ones make the topic's queues
            until((broker.store / "consumequeue" / "orders").exists)
            while sender.is_alive():
                ingest()
        broker.restart()
        with sending(broker, COUNT) as sender:
            while sender.is_alive():
                ingest()
        until(lambda: cluster.scan("orders").count() == 2 * COUNT)
        ingest()
        assert ingest() == (0, 0)
        [name] = cluster.topics()["orders"]
    wanted = scanned(broker.store, ["orders"])
    assert len(wanted) == 2 * COUNT
    assert read.rows() == wanted
    assert pulled.rows() == by_place([row | {"broker_name": name} for row in wanted])
