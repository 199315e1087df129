"""Reads of topics out of the logs of real brokers: rows of pulls, of the store and of a mirror, column by column."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rmqfast import Admin, LocalTransactionState, Message, Mirror, Producer, TransactionProducer
from rmqfast._native import TopicRead
from rmqfast.spark.live.task import read_topic_piece
from rmqfast.spark.reader import store_read
from rmqfast.store import COLUMNS
from tests.interop.rocketmq import RocketMQ, create_topic
from tests.mirror.copies import caught_up
from tests.spark.in_process import Row, partition_rows, rows_in
from tests.waiting import until

from .test_equal_rows import by_place, options_of

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

COUNT, PAIRS, DELAYED = 6000, 20, 10
CONFIG = (
    "mappedFileSizeCommitLog=1048576",
    "mappedFileSizeConsumeQueue=20000",
    "maxHashSlotNum=1000",
    "maxIndexNum=4000",
    "enableLmq=true",
    "enableMultiDispatch=true",
    # a busy machine is no failure
    "brokerFastFailureEnable=false",
    "osPageCacheBusyTimeOutMills=60000",
)


class Bank:
    """Commits every second transaction."""

    def execute_local_transaction(self, message: Message, argument: object) -> LocalTransactionState:
        return LocalTransactionState.COMMIT_MESSAGE if argument else LocalTransactionState.ROLLBACK_MESSAGE

    def check_local_transaction(self, message: object) -> LocalTransactionState:
        return LocalTransactionState.ROLLBACK_MESSAGE


@pytest.fixture(scope="module", params=[pytest.param("4.9.4", marks=pytest.mark.real), "5.3.3", "5.5.0"])
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RocketMQ]:
    """`orders` has messages of all kinds; the log has more than those."""
    with RocketMQ(request.param, tmp_path_factory.mktemp("mq"), *CONFIG, clean=False) as broker:
        for topic in ("orders", "others", "again"):
            broker.create_topic(topic, 4)
        send(broker, "again", range(400), b"of the first life")
        # 5.x lists what it has not listed yet in a queue that was deleted meanwhile
        until(lambda: sum(ends_of(broker, "again").values()) == 400)
        with Admin(name_server=broker.name_server) as admin:
            admin.topics.delete("again", cluster="DefaultCluster")
        send(broker, "orders", range(COUNT // 2))
        send(broker, "others", range(1000), x="y", INNER_MULTI_DISPATCH="%LMQ%light")
        with TransactionProducer("bank", Bank(), name_server=broker.name_server) as producer:
            for number in range(2 * PAIRS):
                producer.send_in_transaction(Message("orders", b"%d" % number, tags="Aa"), number % 2)
        with Producer("delayed", name_server=broker.name_server) as delayed:
            for number in range(DELAYED):
                delayed.send(Message("orders", b"later %d" % number, delay_level=1))
        send(broker, "orders", range(COUNT // 2, COUNT), INNER_MULTI_DISPATCH="%LMQ%light")
        broker.create_topic("again", 4)
        send(broker, "again", range(40), b"of the second life")
        until(lambda: sum(ends_of(broker, "orders").values()) == COUNT + PAIRS + DELAYED, patience=120)
        yield broker


def send(real: RocketMQ, topic: str, numbers: range, body: bytes = b"", **properties: str) -> None:
    with Producer("tests", name_server=real.name_server) as producer:
        producer.send_many(
            [
                Message(
                    topic, body or b"%d" % n * 50, tags=("Aa", "BB", "C")[n % 3], keys=f"key-{n}", properties=properties
                )
                for n in numbers
            ]
        )


def ends_of(real: RocketMQ, topic: str) -> dict[int, int]:
    with Admin(name_server=real.name_server) as admin:
        return {row.queue_id: row.max_offset for row in admin.topics.status(topic)}


@contextmanager
def load(real: RocketMQ) -> Iterator[None]:
    """Messages come, to the topic that is read and to another one."""
    is_over, has_begun = threading.Event(), threading.Event()

    def work() -> None:
        while not is_over.is_set():
            send(real, "others", range(200))
            send(real, "orders", range(100))
            has_begun.set()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert has_begun.wait(60)
        yield
    finally:
        is_over.set()
        thread.join()


def read_of(real: RocketMQ, topic: str = "orders", **options: str) -> TopicRead:
    return TopicRead("topic batch", {"nameServer": real.name_server, "subscribe": topic} | options, COLUMNS)


def rows_of(read: TopicRead) -> list[Row]:
    return by_place(rows_in(batch for piece in read.plan() for batch in read_topic_piece(read, piece)))


def up_to(ends: dict[int, int]) -> dict[str, str]:
    """The option that has a read of `orders` end there."""
    return {"endingOffsets": json.dumps({"orders": {"*": {str(queue): end for queue, end in ends.items()}}})}


def before(rows: list[Row], ends: dict[int, int]) -> list[Row]:
    """Those that were there then."""
    return [row for row in rows if row["queue_offset"] < ends[row["queue_id"]]]


def by_log(read: TopicRead) -> list[Row]:
    """The rows, none of which was pulled."""
    pieces, ways = read.plan_with_ways()
    assert [reason for _, reason in json.loads(ways)] == [None]
    return by_place(rows_in(batch for piece in pieces for batch in read_topic_piece(read, piece)))


def test_rows_are_those_of_pulls_of_the_store_and_of_a_mirror_while_messages_come(
    real: RocketMQ, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Mirror(tmp_path / "copies", name_server=real.name_server) as mirror, load(real):
        ends = ends_of(real, "orders")
        until_then = up_to(ends)
        caught_up(mirror, real.store)
        # before the reads: what else is logged at warning
        caplog.clear()
        every = rows_of(read_of(real, **until_then))
        assert len(every) == sum(ends.values())
        assert by_log(read_of(real, via="log", **until_then)) == every
        assert by_log(read_of(real, via="log", minPartitions="4", **until_then)) == every
        times = sorted(row["store_timestamp"] for row in every)
        arguments: dict[str, Any]
        for arguments in (
            {"tags": "Aa"},
            {"keys": [f"key-{number}" for number in range(0, COUNT, 7)]},
            {"queue_ids": [1, 3], "verify_crc": True},
            {"start_time": times[COUNT // 4], "end_time": times[COUNT // 2]},
        ):
            # offsets of queues that are left out would be an error
            options = options_of(arguments) | ({} if "queue_ids" in arguments else until_then)
            wanted = rows_of(read_of(real, **options))
            found = by_log(read_of(real, via="log", **options))
            if "queue_ids" in arguments:
                wanted, found = before(wanted, ends), before(found, ends)
            assert len(found) > 500
            assert found == wanted, arguments
        assert not [record for record in caplog.records if record.name == "rmqfast.client.ranges"]
        name = every[0]["broker_name"]
        stored = partition_rows(store_read(real.store, "orders", broker_name=name))
        assert by_place(before(stored, ends)) == every
        copied = read_of(real, via="mirror", mirrorPath=str(tmp_path / "copies"), **until_then)
        assert rows_of(copied) == every


def test_what_the_log_does_not_tell_as_pulls_do_is_pulled(real: RocketMQ) -> None:
    assert by_log(read_of(real, "again", via="log")) == rows_of(read_of(real, "again"))
    assert {row["body"] for row in rows_of(read_of(real, "again"))} == {b"of the second life"}
    if real.version != "4.9.4":
        create_topic(real.broker, "compacted", 1, "+cleanup.policy=COMPACTION")
        send(real, "compacted", range(20))
        until(lambda: ends_of(real, "compacted") == {0: 20})
        _, ways = read_of(real, "compacted", via="log").plan_with_ways()
        assert json.loads(ways)[0][1] == "its log does not tell what compacted has: a topic of another kind"


def test_a_broker_that_is_killed_amid_a_read_gives_the_rest_when_it_is_back(real: RocketMQ) -> None:
    # more than sockets hold
    send(real, "others", range(4000), b"x" * 4000)
    before_that = sum(ends_of(real, "orders").values())
    send(real, "orders", range(100))
    until(lambda: sum(ends_of(real, "orders").values()) == before_that + 100)
    read = read_of(real, via="log", retryTimeoutMs="300000")
    every = rows_of(read_of(real))
    (piece,), _ = read.plan_with_ways()
    batches = read_topic_piece(read, piece)
    first = next(batches)
    real.kill9()
    real.start()
    assert by_place(rows_in([first, *batches])) == every


# the last one: others would miss what it takes
def test_what_retention_takes_amid_a_read_is_a_loss_as_with_pulls(
    real: RocketMQ, caplog: pytest.LogCaptureFixture
) -> None:
    # a broker that was killed delivers delayed messages again: it keeps how far it was every ten seconds
    ends = ends_of(real, "orders")
    read = read_of(real, via="log", failOnDataLoss="false", **up_to(ends))
    (piece,), _ = read.plan_with_ways()
    real.kill9()
    for file in sorted((real.store / "commitlog").iterdir())[:2]:
        file.unlink()
    real.start()
    left = by_place(rows_in(read_topic_piece(read, piece)))
    assert 0 < len(left) < sum(ends.values())
    assert any("messages are lost: " in message for message in caplog.messages)
    assert left == rows_of(read_of(real, failOnDataLoss="false", **up_to(ends)))
