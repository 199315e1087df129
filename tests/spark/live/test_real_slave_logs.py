"""Reads of topics out of the log of a SYNC_MASTER's slave: rows are those of pulls, and no send waits for that."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rmqfast import Admin, Message, Producer, SendStatus
from rmqfast._native import TopicRead
from rmqfast.spark.live.task import read_topic_piece
from rmqfast.store import COLUMNS
from tests.broker.interop.pairs import OURS, Pair, pair
from tests.effort import effort
from tests.spark.in_process import Row, rows_in
from tests.waiting import until

from .test_equal_rows import by_place
from .test_log_reads import end_of, served_at

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

COUNT = 4000
KINDS = [("4.9.4", "4.9.4"), ("5.3.3", OURS), ("5.3.3", "5.3.3"), (OURS, "4.9.4")]


@pytest.fixture(params=KINDS[: effort("RMQFAST_PAIRS", 2, 4)], ids="-".join)
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    with pair(request.param, tmp_path) as started, Producer("tests", name_server=started.name_server) as producer:
        # a slave of Java says nothing for its first five seconds
        until(lambda: producer.send(Message("orders", b"first")).status is SendStatus.SEND_OK)
        producer.send_many([Message("orders", b"%d" % n * 50, tags="AB"[n % 2], keys=f"k{n}") for n in range(COUNT)])
        # 5.x lists messages some time after it took them
        until(lambda: sum(ends_of(started).values()) > COUNT)
        yield started


def ends_of(both: Pair) -> dict[int, int]:
    with Admin(name_server=both.name_server) as admin:
        return {row.queue_id: row.max_offset for row in admin.topics.status("orders")}


def up_to(both: Pair, ends: dict[int, int]) -> dict[str, str]:
    """The options of a read of `orders` that ends there."""
    by_queue = {str(queue): end for queue, end in ends.items()}
    return {
        "nameServer": both.name_server,
        "subscribe": "orders",
        "endingOffsets": json.dumps({"orders": {"*": by_queue}}),
    }


@contextmanager
def sends(name_server: str) -> Iterator[Counter[SendStatus]]:
    """Messages are sent meanwhile; how they ended."""
    statuses: Counter[SendStatus] = Counter()
    is_over, has_begun = threading.Event(), threading.Event()

    def work() -> None:
        with Producer("load", name_server=name_server) as producer:
            while not is_over.is_set():
                statuses[producer.send(Message("orders", b"meanwhile" * 20)).status] += 1
                has_begun.set()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert has_begun.wait(60)
        yield statuses
    finally:
        is_over.set()
        thread.join()


def rows_of(read: TopicRead, pieces: list[bytes]) -> list[Row]:
    return by_place(rows_in(batch for piece in pieces for batch in read_topic_piece(read, piece)))


def test_a_sync_master_is_read_at_its_slave_and_sends_go_on(both: Pair, caplog: pytest.LogCaptureFixture) -> None:
    options = {"nameServer": both.name_server, "subscribe": "orders"}
    with sends(both.name_server) as statuses:
        read = TopicRead("topic batch", options | {"via": "log", "minPartitions": "3"}, COLUMNS)
        pieces, ways = read.plan_with_ways()
        assert json.loads(ways) == [["broker-a", None]]
        assert {address.rpartition(":")[2] for piece in pieces for address in served_at(piece)} == {
            str(both.slave.broker_port + 1)
        }
        caplog.clear()
        rows = rows_of(read, pieces)
        assert not [record for record in caplog.records if record.name == "rmqfast.client.ranges"]
        before_that = statuses.total()
        until(lambda: statuses.total() > before_that + 10)
    assert statuses.keys() == {SendStatus.SEND_OK}
    ends = {queue: max(row["queue_offset"] + 1 for row in rows if row["queue_id"] == queue) for queue in range(4)}
    pulled = TopicRead("topic batch", up_to(both, ends), COLUMNS)
    assert rows == rows_of(pulled, pulled.plan())
    assert len(rows) > COUNT


def test_a_slave_that_is_killed_amid_a_read_leaves_the_rest_to_pulls(
    both: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    end = end_of(both.master.broker)
    until(lambda: end_of(both.slave.broker) >= end)
    options = up_to(both, ends_of(both))
    read = TopicRead("topic batch", options | {"via": "log"}, COLUMNS)
    pieces, _ = read.plan_with_ways()
    assert served_at(pieces[0])
    both.slave.kill9()
    rows = rows_of(read, pieces)
    assert any("the rest is pulled: " in message for message in caplog.messages)
    pulled = TopicRead("topic batch", options, COLUMNS)
    assert rows == rows_of(pulled, pulled.plan())
