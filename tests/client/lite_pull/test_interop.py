"""Consumers that pull, with Java's in turn, on real clusters and on ours."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rmqfast import Message, MessageQueue, open_store
from rmqfast._native import MessageView
from rmqfast.client.lite_pull import ConsumeFromWhere, LitePullConsumer, LitePullOptions, MessageSelector
from rmqfast.client.producer import Producer
from rmqfast.client.pull import PullConsumer
from rmqfast.errors import ClientError
from tests.broker.interop.cluster import Cluster
from tests.broker.interop.mqadmin import Admin as MqAdmin
from tests.interop.rocketmq import java, running
from tests.waiting import PATIENCE, collect, until

pytestmark = [pytest.mark.long, pytest.mark.soak, pytest.mark.timeout(600)]


def _version(each_cluster: Cluster) -> str:
    return getattr(each_cluster, "version", "4.9.4")


def fill(each_cluster: Cluster, topic: str, numbers: range, queues: int = 4) -> list[MessageQueue]:
    """Sends `p0`, `p1`... to the queues by turns, with tags `t0` to `t4` and a property `n`."""
    with Producer("filler", name_server=each_cluster.name_server) as producer:
        producer.create_topic(topic, queues)
        until(lambda: len(_queues(producer, topic)) == queues)
        found = _queues(producer, topic)
        for n in numbers:
            message = Message(topic, b"p%d" % n, tags=f"t{n % 5}", properties={"n": str(n)})
            producer.send(message, found[n % queues])
    return found


def _queues(producer: Producer, topic: str) -> list[MessageQueue]:
    try:
        return producer.fetch_publish_message_queues(topic)
    except ClientError:
        return []  # its broker registers it soon


def consumed(
    mode: str, each_cluster: Cluster, group: str, topic: str, count: int, *more: object, extra: str = ""
) -> list[str]:
    """What Java's consumer gets."""
    words = ("--mode", mode, "--namesrv", each_cluster.name_server, "--group", group, "--topic", topic, *more)
    out = java("4.9.4", "Consume", *words, "--count", count, "--timeout-ms", 40_000, "--idle-ms", 30_000, extra=extra)
    rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return [f"{row['queueId']}:{row['queueOffset']}" for row in rows]


def lite(each_cluster: Cluster, group: str, **options: Any) -> LitePullConsumer:
    first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    given = LitePullOptions(**{"auto_commit": False, "consume_from_where": first, "pull_batch_size": 50, **options})
    return LitePullConsumer(group, name_server=each_cluster.name_server, options=given)


def polled(consumer: LitePullConsumer, count: int) -> list[str]:
    """Queue and offset of so many messages."""
    return collect(lambda: [f"{message.queue_id}:{message.queue_offset}" for message in consumer.poll(1.0)], count)


def places(queues: int, begin: int, end: int) -> list[str]:
    return sorted(f"{queue}:{offset}" for queue in range(queues) for offset in range(begin, end))


@dataclass(frozen=True)
class Look:
    """What a broker has as offsets of some queues, in its memory and in its file, and when all of it had been read."""

    known: set[int | None]
    in_file: set[int | None]
    seconds_since_start: float


def looks_until_in_file(
    offset: int, each_cluster: Cluster, consumer: LitePullConsumer, queues: Sequence[MessageQueue], start: float
) -> list[Look]:
    """Looks at the offsets again and again, until the file has that one of all queues."""
    api, key, found = consumer._member.instance.api, (queues[0].topic, consumer.group), list[Look]()  # noqa: SLF001 - what the broker answers now, and to nobody who joins the group

    def look() -> bool:
        known = {api.query_consumer_offset(each_cluster.broker, consumer.group, queue) for queue in queues}
        filed = store.consumer_offsets().get(key, {})
        in_file = {filed.get(queue.queue_id) for queue in queues}
        found.append(Look(known, in_file, time.monotonic() - start))
        return in_file == {offset}

    with open_store(each_cluster.store) as store:
        until(look)
    return found


def test_the_quick_start_of_lite_pull(each_cluster: Cluster, mqadmin: MqAdmin) -> None:
    """Scenario 26.1."""
    queues = fill(each_cluster, "quick", range(400), 4)
    consumer = lite(each_cluster, "cpg")
    consumer.subscribe("quick", "*")
    began = time.monotonic()
    with consumer:
        batches: list[list[MessageView]] = []
        while sum(map(len, batches)) < 400:
            batches.append(consumer.poll(PATIENCE))
        assert max(map(len, batches)) == 32, "a broker gives no more, whatever is asked for"
        assert sorted(f"{m.queue_id}:{m.queue_offset}" for batch in batches for m in batch) == places(4, 0, 100)
        consumer.commit_sync()
        assert {consumer.committed(queue) for queue in queues} == {100}
        looks = looks_until_in_file(100, each_cluster, consumer, queues, began)
        # a client stores offsets 10 s after its start for the first time: what was seen before had not been stored
        early = [look for look in looks if look.seconds_since_start < 10]
        assert not [look for look in early if 100 in look.known or look.in_file != {None}]
        assert looks[-1].known == {100}, "the broker knows what its file has"
        rows = [line.split() for line in mqadmin(["consumerProgress", "-g", "cpg"]).splitlines()]
        seen = [row[3:5] for row in rows if row[:1] == ["quick"]]
        assert seen == [["100", "100"]] * 4, "broker offset and consumer offset, as mqadmin has them"
        connection = mqadmin(["consumerConnection", "-g", "cpg"])
        assert consumer.client_id in connection
        assert "CONSUME_ACTIVELY" in connection
        assert "@STREAM" in consumer.client_id
        assert "cpg" in mqadmin(["consumerStatus", "-g", "cpg", "-i", consumer.client_id])


def test_java_goes_on_where_a_consumer_here_stopped(each_cluster: Cluster) -> None:
    fill(each_cluster, "turns", range(40), 2)
    with lite(each_cluster, "turns") as consumer:
        consumer.subscribe("turns")
        assert sorted(polled(consumer, 40)) == places(2, 0, 20)
        consumer.commit_sync()
    fill(each_cluster, "turns", range(40, 60), 2)
    assert sorted(consumed("lite", each_cluster, "turns", "turns", 20)) == places(2, 20, 30)
    fill(each_cluster, "turns", range(60, 80), 2)
    with lite(each_cluster, "turns") as consumer:
        consumer.subscribe("turns")
        assert sorted(polled(consumer, 20)) == places(2, 30, 40)
        consumer.commit_sync()
    fill(each_cluster, "turns", range(80, 100), 2)
    assert sorted(consumed("push", each_cluster, "turns", "turns", 20)) == places(2, 40, 50)
    with PullConsumer("turns", name_server=each_cluster.name_server) as by_hand:
        queues = by_hand.fetch_subscribe_message_queues("turns")
        until(lambda: [by_hand.fetch_consume_offset(queue, from_store=True) for queue in queues] == [50, 50])


def test_a_group_of_java_and_this_shares_the_queues(each_cluster: Cluster, tmp_path: Path) -> None:
    fill(each_cluster, "mixed", range(0), 4)
    consumer = lite(each_cluster, "mixed")
    consumer.subscribe("mixed")
    words = ("--mode", "lite", "--namesrv", each_cluster.name_server, "--group", "mixed", "--topic", "mixed")
    stay = ("--idle-ms", 300_000, "--timeout-ms", 300_000)
    with consumer:
        until(lambda: len(consumer.assignment) == 4)
        with running("4.9.4", "Consume", *words, *stay, log=tmp_path / "log"):
            until(lambda: len(consumer.assignment) == 2)
            kept = {queue.queue_id for queue in consumer.assignment}
            fill(each_cluster, "mixed", range(80), 4)
            found = polled(consumer, 40)
            assert {place.partition(":")[0] for place in found} == {str(queue) for queue in kept}
            assert len(found) == 40
        until(lambda: len(consumer.assignment) == 4)


def test_tags_and_sql92_are_filtered(each_cluster: Cluster) -> None:
    fill(each_cluster, "filtered", range(100), 4)
    cases: list[tuple[str, str | MessageSelector, int]] = [
        ("tags", "t1 || t3", 40),
        ("sql", MessageSelector.by_sql("n >= 10 AND n < 30 AND TAGS = 't2'"), 4),
    ]
    for group, wanted, count in cases:
        with lite(each_cluster, group) as consumer:
            consumer.subscribe("filtered", wanted)
            assert len(polled(consumer, count)) == count
