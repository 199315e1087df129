"""Push consumers with RocketMQ's own brokers, beside its own consumers; and the same with ours."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from rmqfast import Admin as BlockingAdmin
from rmqfast import Message, MessageQueue
from rmqfast._native import MessageView
from rmqfast.client.instance import ClientConfig
from rmqfast.client.producer import Producer
from rmqfast.client.push import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus, PushConsumer, PushTimings
from rmqfast.errors import ResponseError
from tests.broker.interop.cluster import Cluster, version_of
from tests.broker.interop.mqadmin import Admin
from tests.interop.rocketmq import running
from tests.waiting import PATIENCE, until

from .listening import Seen, is_there, member_of, send

pytestmark = [pytest.mark.long, pytest.mark.soak, pytest.mark.timeout(600)]

SUCCESS, LATER = ConsumeConcurrentlyStatus.CONSUME_SUCCESS, ConsumeConcurrentlyStatus.RECONSUME_LATER


@pytest.fixture(scope="module")
def producer(each_cluster: Cluster) -> Iterator[Producer]:
    with Producer("sends", name_server=each_cluster.name_server) as started:
        yield started


def consumer(
    each_cluster: Cluster, group: str, listener: Any, topic: str, tags: str = "*", **options: Any
) -> PushConsumer:
    orderly = options.pop("orderly", None)
    config = options.pop("config", ClientConfig(rebalance_interval=2.0, persist_offset_interval=0.5))
    made = PushConsumer(group, name_server=each_cluster.name_server, config=config, **options)
    made.subscribe(topic, tags)
    made.register_message_listener(listener, orderly=orderly)
    return made


def stored(one: PushConsumer, queue: MessageQueue) -> int | None:
    """A group's offset as the broker has it."""
    instance = member_of(one).instance
    address = instance.routes.publish_address(queue.broker_name)
    assert address is not None
    return instance.api.query_consumer_offset(address, one.group, queue)


def version(one: PushConsumer, topic: str) -> int:
    """Of a member's subscription, in milliseconds: brokers go by the newest."""
    subscription = member_of(one).subscription(topic)
    assert subscription is not None
    return subscription.sub_version


def mine(one: PushConsumer, topic: str) -> set[int]:
    """The queues of a topic that a member has."""
    return {queue.queue_id for queue in list(member_of(one).rebalance.process_queues) if queue.topic == topic}


@pytest.mark.parametrize(("length", "kept"), [(120, ["ours", "4.9.4", "5.3.3", "5.5.0"]), (248, ["5.3.3"]), (255, [])])
def test_a_group_of_any_length_is_served_and_its_retries_as_far_as_brokers_store_them(
    each_cluster: Cluster, producer: Producer, request: pytest.FixtureRequest, length: int, kept: list[str]
) -> None:
    topic, group = f"long{length}", "g" * length
    if length > 120 and version_of(each_cluster) == "5.5.0":  # it serves no such group
        refused = pytest.raises(ResponseError, match="max length: 120")
        with BlockingAdmin(name_server=each_cluster.name_server) as admin, refused:
            admin.create_group(group)
        return
    send(producer, topic, [b"x"], queues=1)
    seen = Seen(lambda messages, _context: SUCCESS if messages[0].reconsume_times else LATER)
    with (
        BlockingAdmin(name_server=each_cluster.name_server) as admin,
        consumer(each_cluster, group, seen, topic, consume_from_where="CONSUME_FROM_FIRST_OFFSET") as one,
    ):
        seen.wait(2)  # a retry that no broker stores stays with its member
        until(lambda: f"%RETRY%{group}" in admin.topics.all())
        assert admin.groups.connections(group).client_ids == [one.client_id]
        retries = sum(row.max_offset for row in admin.topics.status(f"%RETRY%{group}"))
    assert retries == (1 if request.node.callspec.params["cluster"] in kept else 0)


def test_members_with_other_tags_lose_what_the_other_one_wants(each_cluster: Cluster, producer: Producer) -> None:
    topic, group = "conflict", "inconsistent"
    queues = send(producer, topic, [], queues=4)
    seen_a, seen_b = Seen(), Seen()
    first = consumer(each_cluster, group, seen_a, topic, "tagA", instance_name="1-tagA")
    second = consumer(each_cluster, group, seen_b, topic, "tagB", instance_name="2-tagB")
    with first, second:
        until(lambda: (mine(first, topic), mine(second, topic)) == ({0, 1}, {2, 3}))
        for one in (first, second):
            member_of(one).do_rebalance()  # waits for one that is under way, whose end makes a subscription newer

        def is_tag_b_newest() -> bool:
            second.subscribe(topic, "tagB")
            return version(second, topic) > version(first, topic)

        until(is_tag_b_newest)  # a matter of milliseconds
        for number in range(8):
            producer.send(Message(topic, b"B%d" % number, tags="tagB"), queues[number % 4])
        seen_b.wait(4)
        # the offsets of the queues of tagA pass over what was dropped here once the pull that waits has ended
        until(lambda: [stored(first, queue) for queue in queues] == [2, 2, 2, 2])
    assert sorted(seen_b.bodies) == [b"B2", b"B3", b"B6", b"B7"]
    assert seen_a.bodies == []


def test_what_is_consumed_in_vain_comes_again_and_is_a_dead_letter_at_the_end(
    each_cluster: Cluster, producer: Producer
) -> None:
    send(producer, "vain", [b"once", b"always"])

    def answer(messages: Sequence[MessageView], _context: Any) -> Any:
        (message,) = messages
        if message.body == b"once" and message.reconsume_times:
            return SUCCESS
        raise ValueError("mine")

    seen, dead = Seen(answer), Seen()
    with consumer(each_cluster, "g-vain", seen, "vain", max_reconsume_times=2):
        seen.wait(5)
        until(lambda: is_there(producer, "%DLQ%g-vain"))
    with consumer(each_cluster, "g-vain-dead", dead, "%DLQ%g-vain"):
        dead.wait(1)
    assert Counter(seen.bodies) == {b"once": 2, b"always": 3}
    assert [(m.topic, m.reconsume_times) for m in seen.messages if m.body == b"always"] == [
        ("vain", times) for times in range(3)
    ]
    assert dead.bodies == [b"always"]
    assert dead.messages[0].msg_id == next(m.msg_id for m in seen.messages if m.body == b"always")


def test_queues_in_order_are_in_one_hand(each_cluster: Cluster, producer: Producer) -> None:
    queues = send(producer, "hands", [], queues=4)
    inside: set[MessageQueue] = set()
    wrong: list[MessageQueue] = []
    done: list[MessageView] = []
    guard, is_wrong = threading.Lock(), threading.Event()

    def listen(messages: Sequence[MessageView], context: Any) -> Any:
        with guard:
            if context.queue in inside:
                wrong.append(context.queue)
                is_wrong.set()
            inside.add(context.queue)
        is_wrong.wait(0.01)  # lets the other member come in
        with guard:
            inside.discard(context.queue)
            done.extend(messages)
        return ConsumeOrderlyStatus.SUCCESS

    for number in range(400):
        producer.send(Message("hands", b"%d" % number), queues[number % 4])
    timings = PushTimings(unlock_delay=0.5, first_lock=0.2, lock_interval=2.0)
    members = [consumer(each_cluster, "g-hands", listen, "hands", orderly=True, timings=timings) for _ in range(2)]
    with members[0]:
        until(lambda: len(done) > 40)
        with members[1]:
            until(lambda: mine(members[1], "hands"))
            until(lambda: len(done) > 200)
        until(lambda: len({message.body for message in done}) == 400)
    assert wrong == []
    assert len(done) <= 404


def test_mqadmin_shows_what_it_does(each_cluster: Cluster, producer: Producer) -> None:
    send(producer, "shown", [b"0", b"1"])
    seen = Seen()
    with (
        consumer(each_cluster, "g-shown", seen, "shown", "a || b || *") as one,
        running(version_of(each_cluster), "Admin", "--stdin", log=each_cluster.directory / "mqadmin.log") as process,
    ):
        admin = Admin(process, each_cluster.name_server)
        status = admin(["consumerStatus", "-g", "g-shown", "-i", one.client_id])
        assert "#Consumer Properties#" in status
        assert "PROP_CONSUMEORDERLY" in status
        assert "#Consumer MQ Detail#" in status
        assert "#Consumer RT&TPS#" in status
        assert one.client_id in admin(["consumerConnection", "-g", "g-shown"])


@pytest.mark.parametrize("mode", ["push", "orderly"])
def test_java_and_python_share_a_group_without_a_gap(
    each_cluster: Cluster, producer: Producer, mode: str, tmp_path: Path
) -> None:
    topic, group = f"mixed-{mode}", f"g-mixed-{mode}"
    queues = send(producer, topic, [], queues=4)
    answer = ConsumeOrderlyStatus.SUCCESS if mode == "orderly" else SUCCESS
    seen = Seen(lambda *_: answer)
    sent: list[bytes] = []

    def more(count: int) -> None:
        for _ in range(count):
            sent.append(b"%d" % len(sent))
            producer.send(Message(topic, sent[-1]), queues[len(sent) % 4])
            time.sleep(0.005)  # noqa: TID251 - sends steadily while Java's consumer starts and leaves

    # 5.x answers for an empty queue that the group is new there, so that its first message may come before its start
    one = consumer(
        each_cluster, group, seen, topic, orderly=mode == "orderly", consume_from_where="CONSUME_FROM_FIRST_OFFSET"
    )
    words = ("--mode", mode, "--namesrv", each_cluster.name_server, "--group", group, "--topic", topic)
    ends = ("--count", "150", "--idle-ms", "60000", "--timeout-ms", "90000", "--full-body")
    with one:
        more(100)
        with running(version_of(each_cluster), "Consume", *words, *ends, log=tmp_path / "java.log") as java:
            until(lambda: len(mine(one, topic)) == 2, "Java's consumer has two queues")
            while java.poll() is None and len(sent) < 3000:
                more(20)
            out, _ = java.communicate(timeout=PATIENCE)
        until(lambda: len(mine(one, topic)) == 4, "Java's consumer has left")
        more(100)
        theirs = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        bodies = {base64.b64decode(row["body"]) for row in theirs}
        until(lambda: set(seen.bodies) | bodies >= set(sent), lambda: set(sent) - set(seen.bodies) - bodies)
    assert len(theirs) >= 150
    twice = Counter([*seen.bodies, *bodies])
    # who gets a queue may ask for its offset before it is stored
    assert sum(twice.values()) - len(sent) <= 300
