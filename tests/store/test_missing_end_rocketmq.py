"""A real 4.9.4 broker on a store whose lost end was given up: no offset comes twice, and consumers pass the gap."""

from __future__ import annotations

from pathlib import Path

import pytest

import rmqfast
from rmqfast import AppendOptions, Message, MessageQueue, PullConsumer
from rmqfast.store import find_missing_end, repair
from tests.interop.rocketmq import RocketMQ

from .test_handover import GEOMETRY, send

SIZES = AppendOptions(file_size=1 << 20, queue_file_size=20_000, index_slots=1000, index_entries=4000)
QUEUES = 3


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("count", "is_clean"), [(300, True), (9000, True), (9000, False)])
def test_a_real_broker_goes_on_behind_what_was_lost(tmp_path: Path, count: int, is_clean: bool) -> None:
    path = tmp_path / "mq" / "store"
    with rmqfast.open_store(path, mode="a", options=SIZES) as store:
        store.append_many([Message("T", b"%d" % n * 30, queue_id=n % QUEUES, keys=f"k{n}") for n in range(count)])
    log = max((path / "commitlog").iterdir())
    log.write_bytes(bytes(log.stat().st_size))
    missing = find_missing_end(path)
    assert missing is not None
    assert repair(path, cut_at=missing.log_end).left_out > 0
    kept = rmqfast.open_store(path).scan("T", columns=["queue_id", "queue_offset"]).to_arrow().to_pylist()
    if not is_clean:
        (path / "abort").touch()
    with RocketMQ("4.9.4", tmp_path / "mq", *GEOMETRY) as cluster:
        cluster.create_topic("T", QUEUES)
        sent = send(cluster.name_server, 0)
        first = [min(offset for _, number, offset in sent if number == queue) for queue in range(QUEUES)]
        assert first == [count // QUEUES] * QUEUES
        with PullConsumer("gap", name_server=cluster.name_server) as consumer:
            for queue in consumer.fetch_subscribe_message_queues("T"):
                expected = [row["queue_offset"] for row in kept if row["queue_id"] == queue.queue_id]
                expected += sorted(offset for _, number, offset in sent if number == queue.queue_id)
                assert read_all(consumer, queue) == expected
    assert rmqfast.open_store(path).verify().damage == []


def read_all(consumer: PullConsumer, queue: MessageQueue) -> list[int]:
    """Queue offsets of all messages, from the first byte that the queue can have."""
    offset, offsets, end = 0, [], consumer.max_offset(queue)
    while offset < end:
        result = consumer.pull(queue, "*", offset, 32)
        offsets += [message.queue_offset for message in result.messages]
        assert result.next_begin_offset > offset
        offset = result.next_begin_offset
    return offsets
