"""Bodies of a cluster as a column, and messages as of a time: as in a scan of its brokers' stores."""

from __future__ import annotations

import json
from collections.abc import Iterator

import duckdb
import pytest

import rmqfast
from rmqfast.errors import DecodeError, DecodeWarning
from tests.cluster.rows import PLACE, rows_of, stored_rows
from tests.spark.live.topics import LiveCluster

pytestmark = pytest.mark.slow
COUNT = 400
BAD = 40


@pytest.fixture(scope="module")
def decoded() -> Iterator[rmqfast.MessageCluster]:
    with rmqfast.EmbeddedCluster(brokers=2) as cluster:
        with rmqfast.Producer("decoded", name_server=cluster.name_server) as producer:
            for number in range(COUNT):
                body = json.dumps({"amount": number}).encode() if number % BAD else b"none"
                producer.send(rmqfast.Message("orders", body, tags="paid" if number % 10 == 0 else "seen"))
        yield rmqfast.open_cluster(cluster.name_server)


@pytest.mark.parametrize("threads", [1, 2])
def test_bodies_are_decoded_and_bad_ones_counted(decoded: rmqfast.MessageCluster, threads: int) -> None:
    scan = decoded.scan(
        "orders", decode="json", schema="amount bigint", columns=["body", "value.amount"], threads=threads
    )
    with pytest.warns(DecodeWarning, match=f"{COUNT // BAD} bodies could not be decoded") as caught:
        rows = scan.to_arrow().to_pylist()
    assert [warning.filename for warning in caught] == [__file__]
    assert [row["value"] for row in rows] == [
        None if row["body"] == b"none" else {"amount": json.loads(row["body"])["amount"]} for row in rows
    ]
    assert {body.topic for body in scan.decode_errors} == {"orders"}
    assert len(scan.decode_errors) == COUNT // BAD
    assert scan.count() == COUNT


def test_a_query_reads_fields_of_bodies(decoded: rmqfast.MessageCluster) -> None:
    orders = decoded.table("orders", decode="json", schema="amount bigint")
    with pytest.warns(DecodeWarning):
        found = duckdb.connect().execute("select sum(value.amount) from orders where tags = 'paid'").fetchall()
    assert orders.schema.names[-1] == "value"
    assert found == [(sum(number for number in range(0, COUNT, 10) if number % BAD),)]


def test_a_scan_that_is_to_fail_names_the_first_bad_body(decoded: rmqfast.MessageCluster) -> None:
    scan = decoded.scan("orders", decode="json", schema="amount bigint", on_error="fail")
    with pytest.raises(DecodeError, match="of topic orders: expected a JSON object at byte 0, got 'n'"):
        scan.to_arrow()


def test_as_of_and_the_difference_of_two_times_are_those_of_the_stores(live_cluster: LiveCluster) -> None:
    cluster = rmqfast.open_cluster(live_cluster.name_server)
    columns = [*PLACE, "store_timestamp"]
    times = sorted(row["store_timestamp"] for row in stored_rows(live_cluster.directory, columns=columns))
    first, middle, last = times[0], times[len(times) // 2], times[-1]
    for when in (first, middle, last):
        rows = rows_of(cluster.scan("orders", as_of=when, columns=columns))
        assert rows == stored_rows(live_cluster.directory, as_of=when, columns=columns)
        assert rows
    between = rows_of(cluster.diff(first, middle, "orders", columns=columns))
    assert all(first < row["store_timestamp"] <= middle for row in between)
    assert len(between) == sum(first < time <= middle for time in times)
