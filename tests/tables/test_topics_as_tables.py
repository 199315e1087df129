"""A table of a live cluster's topics has each message once, and follows the topics."""

from __future__ import annotations

from pathlib import Path

import pytest

import rmqfast
from rmqfast.errors import ArgumentError, DataLossError
from tests.spark.live import topics
from tests.spark.live.topics import LiveCluster
from tests.tables.lakes import Lake
from tests.tables.stored_rows import by_place, scanned

pytestmark = pytest.mark.slow


def stored(directory: Path, names: list[str]) -> list[dict[str, object]]:
    """The rows of the brokers' stores, as tables have them."""
    rows = []
    for name, path in topics.stores(directory).items():
        with rmqfast.open_store(path) as store:
            # a broker that got no message of a topic does not know it
            known = [topic for topic in names if topic in store.topics()]
        rows += [row | {"broker_name": name} for row in scanned(path, known)]
    return by_place(rows)


def test_a_table_has_the_rows_of_the_brokers_stores(live_cluster: LiveCluster, lake: Lake) -> None:
    cluster = rmqfast.open_cluster(live_cluster.name_server)
    wanted = stored(live_cluster.directory, ["orders"])
    assert lake.ingest(cluster, ["orders"]).rows == len(wanted)
    assert lake.rows() == wanted
    again = lake.ingest(cluster, ["orders"])
    assert (again.rows, again.commits) == (0, 0)
    (store, *_) = topics.stores(live_cluster.directory).values()
    with pytest.raises(ArgumentError, match=r"source: expected a cluster, with which .* was begun, got a store"):
        lake.ingest(store, ["orders"])
    lake.ingest(store, ["orders"], table="of_store")
    with pytest.raises(ArgumentError, match=r"source: expected a store, with which .* was begun, got a cluster"):
        lake.ingest(cluster, ["orders"], table="of_store")


def test_a_table_follows_its_topics_in_steps(tmp_path: Path, lake: Lake) -> None:
    with topics.cluster_in(tmp_path / "cluster") as running:
        for name in ("orders", "bills"):
            topics.create(running, name)
        cluster = rmqfast.open_cluster(running.name_server)
        topics.fill(running, 500, "orders")
        first = lake.ingest(cluster, commit_bytes=100 << 10)
        assert first.rows == 500
        assert first.commits >= 5
        topics.fill(running, 300, "bills")
        topics.create(running, "later")
        topics.fill(running, 200, "later")
        assert lake.ingest(cluster).rows == 500
        assert lake.ingest(cluster).rows == 0
        assert lake.rows() == stored(tmp_path / "cluster", ["orders", "bills", "later"])


def test_a_topic_that_was_made_anew_is_told(tmp_path: Path, lake: Lake) -> None:
    with topics.cluster_in(tmp_path / "cluster") as running:
        topics.create(running, "orders")
        topics.fill(running, 500, "orders")
        cluster = rmqfast.open_cluster(running.name_server)
        lake.ingest(cluster, ["orders"])
        with rmqfast.Admin(name_server=running.name_server) as admin:
            admin.topics.delete("orders")
        topics.create(running, "orders")
        topics.fill(running, 40, "orders")
        with pytest.raises(DataLossError, match=r"the table is at offset .* the topic was made anew") as raised:
            lake.ingest(cluster, ["orders"])
        assert "checkpoint" not in str(raised.value)
        written = lake.ingest(cluster, ["orders"], on_damage="warn")
        assert written.rows == 40
        assert any("messages are lost: the table is at offset" in text for text in written.losses)
        assert lake.ingest(cluster, ["orders"]).losses == ()


def test_an_end_time_is_of_stores_only(live_cluster: LiveCluster, lake: Lake) -> None:
    cluster = rmqfast.open_cluster(live_cluster.name_server)
    with pytest.raises(ArgumentError, match="end_time: expected none for a cluster"):
        lake.ingest(cluster, ["orders"], end_time=1)
