"""A scan of a cluster has the rows of a scan of its brokers' stores, column by column."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import rmqfast
from rmqfast.store import COLUMNS
from tests.cluster.rows import PLACE, by_place, rows_of, stored_rows
from tests.spark.live.topics import MESSAGES, LiveCluster

pytestmark = pytest.mark.slow

ARGUMENTS: dict[str, dict[str, Any]] = {
    "all": {},
    "tag": {"tags": "paid || refunded"},
    "a list of tags": {"tags": ["paid", "Aa"]},
    "tags of one hash": {"tags": "Aa"},
    "sql": {"sql": "number > 100 AND region = 'eu'"},
    "sql and tags": {"sql": "number BETWEEN 10 AND 500", "tags": "paid"},
    "keys": {"keys": [f"key-{number}" for number in range(0, 1200, 2)]},
    "a key with a comma": {"keys": ["key-1,key-2", "key-4"]},
    "keys and tags": {"keys": [f"key-{number}" for number in range(1000)], "tags": "Aa"},
    "a prefix of keys": {"keys_prefix": "key-11"},
    "a prefix of keys, without a column of it": {"keys_prefix": "key-11", "columns": [*PLACE, "body"]},
    "a prefix, keys and tags": {"keys_prefix": "key-1", "keys": ["key-1", "key-100", "key-2"], "tags": "refunded"},
    "bodies by their CRC": {"verify_crc": True, "tags": "paid"},
    "queues": {"queue_ids": [0, 3]},
    "one queue": {"queue_ids": 2},
    "columns": {"columns": ["queue_offset", "tags", "queue_id", "broker_name", "topic"]},
    "properties": {"property_names": ["region", "KEYS"], "tags": "paid"},
    "one offset of all queues": {"start_offset": 100, "end_offset": 120},
    "offsets by queue": {"start_offset": {0: 10, 1: 149}, "end_offset": {0: 20, 2: 1}},
    "small batches": {"batch_rows": 7},
    "batches of few bytes": {"batch_bytes": 1},
    "bodies that are too large": {"max_body_bytes": 1000, "on_damage": "warn"},
    "threads": {"threads": 3},
    "no key": {"keys": []},
    "no queue": {"queue_ids": []},
}


@pytest.fixture(scope="module")
def cluster(live_cluster: LiveCluster) -> rmqfast.MessageCluster:
    return rmqfast.open_cluster(live_cluster.name_server)


@pytest.mark.filterwarnings("ignore::rmqfast.DamageWarning")
@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS)
def test_the_rows_are_those_of_the_stores(
    live_cluster: LiveCluster, cluster: rmqfast.MessageCluster, arguments: dict[str, Any]
) -> None:
    scan = cluster.scan("orders", **arguments)
    rows, expected = rows_of(scan), stored_rows(live_cluster.directory, **arguments)
    assert rows == expected
    assert scan.schema.names == list(arguments.get("columns", COLUMNS))
    # again, and by the queues where they decide it
    assert (rows_of(scan), scan.count()) == (rows, len(rows))


def test_the_schema_is_that_of_a_store(live_cluster: LiveCluster, cluster: rmqfast.MessageCluster) -> None:
    with rmqfast.open_store(live_cluster.directory / "broker-a") as store:
        assert cluster.scan("orders").schema == store.scan("orders").schema


def test_each_column_by_itself_is_that_of_all(live_cluster: LiveCluster, cluster: rmqfast.MessageCluster) -> None:
    every = stored_rows(live_cluster.directory)
    for column in COLUMNS:
        names = [*PLACE, *({column} - set(PLACE))]
        assert rows_of(cluster.scan("orders", columns=names)) == [{n: row[n] for n in names} for row in every], column


def test_times_are_exact_and_half_open(live_cluster: LiveCluster, cluster: rmqfast.MessageCluster) -> None:
    times = sorted(row["store_timestamp"] for row in stored_rows(live_cluster.directory))
    start, end = times[300], times[900]
    wanted = [time for time in times if start <= time < end]
    milliseconds = [round(time.timestamp() * 1000) for time in (start, end)]
    for first, last in [(start, end), tuple(milliseconds), (start.isoformat(), end.isoformat())]:
        scan = cluster.scan("orders", start_time=first, end_time=last, columns=["store_timestamp"])
        assert sorted(scan.to_arrow()["store_timestamp"].to_pylist()) == wanted
        assert scan.count() == len(wanted) > 100
    assert cluster.scan("orders", start_time=datetime(2100, 1, 1, tzinfo=UTC)).count() == 0


def test_batches_have_at_most_the_rows_that_were_asked_for(cluster: rmqfast.MessageCluster) -> None:
    sizes = [batch.num_rows for batch in cluster.scan("orders", batch_rows=7, columns=["queue_id"]).batches()]
    assert max(sizes) == 7
    assert sum(sizes) == MESSAGES


def test_rows_without_columns_and_no_topic(cluster: rmqfast.MessageCluster) -> None:
    assert cluster.scan("orders", columns=[]).to_arrow().num_rows == MESSAGES
    nothing = cluster.scan([])
    assert (nothing.to_arrow().num_rows, nothing.count()) == (0, 0)


def test_a_queue_is_read_in_its_order(cluster: rmqfast.MessageCluster) -> None:
    seen: dict[tuple[str, int], int] = {}
    for row in cluster.scan("orders", columns=["broker_name", "queue_id", "queue_offset"]).to_arrow().to_pylist():
        queue = row["broker_name"], row["queue_id"]
        assert row["queue_offset"] == seen.get(queue, -1) + 1
        seen[queue] = row["queue_offset"]
    assert len(seen) == 8


def test_limits_are_of_rows(cluster: rmqfast.MessageCluster) -> None:
    scan = cluster.scan("orders", columns=["queue_offset"])
    assert [len(scan.limit(rows).to_arrow()) for rows in (0, 1, 5, 10_000)] == [0, 1, 5, MESSAGES]
    assert len(scan.head()) == 5
    assert [scan.limit(rows).count() for rows in (0, 3, 10_000)] == [0, 3, MESSAGES]
    assert cluster.scan("orders", tags="paid").limit(3).count() == 3


def test_the_queues_of_all_topics_are_listed(cluster: rmqfast.MessageCluster) -> None:
    each = MESSAGES // 8
    queues = dict.fromkeys(range(4), (0, each))
    assert cluster.topics() == {"orders": {"broker-a": queues, "broker-b": queues}}


def test_offsets_are_by_broker_too(live_cluster: LiveCluster, cluster: rmqfast.MessageCluster) -> None:
    scan = cluster.scan(
        "orders",
        start_offset={"broker-a": {0: 140, 1: -1, 2: -2, 3: -1}, "broker-b": {0: -1, 1: -1, 2: -1, 3: 100}},
        end_offset={"broker-a": {2: 3}},
    )
    wanted = {("broker-a", 0): range(140, 150), ("broker-a", 2): range(3), ("broker-b", 3): range(100, 150)}
    every = stored_rows(live_cluster.directory)
    chosen = [row for row in every if row["queue_offset"] in wanted.get((row["broker_name"], row["queue_id"]), ())]
    assert rows_of(scan) == by_place(chosen)
    assert scan.count() == len(chosen)
    assert cluster.scan("orders", start_offset="latest").count() == 0
    assert cluster.scan("orders", end_offset="earliest").count() == 0
