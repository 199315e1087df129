"""Push consumers against a broker in this process: each queue in its order."""

from __future__ import annotations

import functools
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rmqfast import EmbeddedCluster, Message, MessageQueue
from rmqfast._native import MessageView
from rmqfast.admin import Admin
from rmqfast.client.producer import Producer
from rmqfast.client.push import ConsumeOrderlyContext, ConsumeOrderlyStatus
from tests.torn import send_torn
from tests.waiting import PATIENCE, until

from .listening import PATIENT, Make, Seen, member_of, position, send, until_committed

SUCCESS, SUSPEND = ConsumeOrderlyStatus.SUCCESS, ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
COMMIT, ROLLBACK = ConsumeOrderlyStatus.COMMIT, ConsumeOrderlyStatus.ROLLBACK


def milliseconds() -> int:
    return time.time_ns() // 1_000_000


def by_queue(messages: Sequence[MessageView]) -> dict[int, list[int]]:
    """The offsets that came, queue by queue."""
    found: dict[int, list[int]] = {}
    for message in messages:
        found.setdefault(message.queue_id, []).append(message.queue_offset)
    return found


def test_each_queue_comes_in_its_order_and_its_lock_is_given_up_at_the_end(
    cluster: EmbeddedCluster, producer: Producer, make: Make
) -> None:
    queues = send(producer, "ordered", [b"%d" % number for number in range(60)], queues=4)
    lock = functools.partial(cluster.brokers[0].state.locks.lock, "g-ordered", "another", queues)
    seen = Seen(lambda *_: SUCCESS)
    with make(cluster, "g-ordered", seen, "ordered", orderly=True, consume_message_batch_max_size=3):
        seen.wait(60)
        assert lock(now=milliseconds()) == []
    assert by_queue(seen.messages) == {queue: list(range(15)) for queue in range(4)}
    until_committed(cluster, "g-ordered", "ordered", dict.fromkeys(range(4), 15))
    until(lambda: lock(now=milliseconds()) == queues)


def test_what_comes_too_often_is_a_dead_letter_and_the_queue_goes_on(
    cluster: EmbeddedCluster, producer: Producer, make: Make
) -> None:
    send(producer, "stuck", [b"0", b"1"])
    seen = Seen(lambda messages, _: SUSPEND if messages[0].body == b"0" else SUCCESS)
    options = {"max_reconsume_times": 2, "suspend_current_queue_time_millis": 10}
    with make(cluster, "g-stuck", seen, "stuck", orderly=True, **options):
        seen.wait(4)
        assert cluster.brokers[0].state.topics.get("%DLQ%g-stuck")
    assert [(m.body, m.reconsume_times) for m in seen.messages] == [(b"0", 0), (b"0", 1), (b"0", 2), (b"1", 0)]
    until_committed(cluster, "g-stuck", "stuck", {0: 2})


def test_what_does_not_decompress_is_a_dead_letter_and_the_queue_goes_on(
    cluster: EmbeddedCluster, producer: Producer, make: Make
) -> None:
    (queue,) = send(producer, "torn", [])
    send_torn(cluster.brokers[0].address, "torn")
    producer.send(Message("torn", b"1"), queue)
    seen = Seen(lambda messages, _: SUCCESS if messages[0].body else SUSPEND)
    options = {"max_reconsume_times": 1, "suspend_current_queue_time_millis": 10}
    with make(cluster, "g-torn", seen, "torn", orderly=True, **options):
        seen.wait(3)
    until_committed(cluster, "g-torn", "torn", {0: 2})
    with Admin(name_server=cluster.name_server) as admin:
        (letter,) = admin.dead_letters.of_group("g-torn")
    assert letter.to_message_ext().body is None
    assert letter.properties["RETRY_TOPIC"] == "torn"


class Hands:
    """Listeners of several members, who note what they have done, and when two are at work with one queue."""

    def __init__(self) -> None:
        self.done: dict[str, list[MessageView]] = {}
        self.wrong: list[str] = []
        self._inside: dict[MessageQueue, str] = {}
        self._guard, self._two_met = threading.Lock(), threading.Event()

    def listener(self, name: str) -> Callable[..., ConsumeOrderlyStatus]:
        def listen(messages: Sequence[MessageView], context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus:
            with self._guard:
                if context.queue in self._inside:
                    self.wrong.append(f"{context.queue} is consumed by {self._inside[context.queue]} and {name}")
                    self._two_met.set()
                self._inside[context.queue] = name
            self._two_met.wait(0.003)  # lets another member come in
            with self._guard:
                self._inside.pop(context.queue, None)
                self.done.setdefault(name, []).extend(messages)
            return SUCCESS

        return listen

    @property
    def count(self) -> int:
        with self._guard:
            return sum(map(len, self.done.values()))


def test_no_queue_is_in_two_hands_while_members_come_and_go(
    cluster: EmbeddedCluster, producer: Producer, make: Make
) -> None:
    queues, hands, sent = send(producer, "hands", [], queues=6), Hands(), itertools.count()
    total = 0

    def has_had_one(name: str) -> bool:
        """Whether a member has had a message; each queue has one whenever members change."""
        nonlocal total
        if hands.count >= total:
            for queue in queues * 2:
                producer.send(Message("hands", b"%d" % next(sent)), queue, PATIENCE)
            total += 12
        return name in hands.done

    config = replace(PATIENT, rebalance_interval=0.1)
    with make(cluster, "g-hands", hands.listener("first"), "hands", orderly=True, config=config):
        for name in ("guest 1", "guest 2", "guest 3", "guest 4"):
            with make(cluster, "g-hands", hands.listener(name), "hands", orderly=True, config=config):
                until(functools.partial(has_had_one, name))
        until(lambda: hands.count >= total)
    assert hands.wrong == []
    # each member sees a queue in its order, whoever had it in between
    for messages in hands.done.values():
        for offsets in by_queue(messages).values():
            assert offsets == sorted(offsets)
    until_committed(cluster, "g-hands", "hands", dict.fromkeys(range(6), total // 6))
    # what was done was stored before a queue was given up
    bodies = Counter(message.body for messages in hands.done.values() for message in messages)
    assert bodies == {b"%d" % number: 1 for number in range(total)}


def test_a_broadcast_in_order_needs_no_locks(
    cluster: EmbeddedCluster, producer: Producer, tmp_path: Path, make: Make
) -> None:
    (queue,) = send(producer, "played", [b"0", b"1", b"2"])
    members = [Seen(lambda *_: SUCCESS), Seen(lambda *_: SUCCESS)]
    where: dict[str, Any] = {"message_model": "BROADCASTING", "consume_from_where": "CONSUME_FROM_FIRST_OFFSET"}
    with ExitStack() as running:
        for number, seen in enumerate(members):
            config = replace(PATIENT, local_offset_dir=tmp_path, instance_name=f"m{number}")
            one = make(cluster, "g-played", seen, "played", orderly=True, config=config, **where)
            running.enter_context(one)
        for seen in members:
            seen.wait(3)
        now = milliseconds()
        assert cluster.brokers[0].state.locks.lock("g-played", "another", [queue], now=now) == [queue]
    assert [seen.bodies for seen in members] == [[b"0", b"1", b"2"]] * 2


@pytest.mark.parametrize("does_guest_stay", [True, False])
def test_a_queue_that_a_listener_is_at_work_with_changes_hands_afterwards_or_stays(
    cluster: EmbeddedCluster, producer: Producer, does_guest_stay: bool, make: Make
) -> None:
    topic = f"busy-{does_guest_stay}"
    queues = send(producer, topic, [b"0", b"1", b"2", b"3"], queues=2)
    release, began = threading.Event(), threading.Event()

    def work(messages: Sequence[MessageView], context: Any) -> Any:
        if context.queue == queues[1] and messages[0].queue_offset == 0:
            began.set()
            release.wait(PATIENCE)
        return SUCCESS

    # members are sorted by name: the second queue is to be the guest's
    configs = [
        replace(PATIENT, rebalance_interval=0.05, persist_offset_interval=0.05, instance_name=name)
        for name in ("1-host", "2-guest")
    ]
    seen, guests = Seen(work), Seen(lambda *_: SUCCESS)
    host, guest = (
        make(cluster, f"g-{topic}", listener, topic, orderly=True, config=config)
        for listener, config in zip((seen, guests), configs, strict=True)
    )
    with host, ExitStack() as guests_stay:
        assert began.wait(PATIENCE)
        guests_stay.enter_context(guest)
        process_queue = member_of(host).rebalance.process_queues[queues[1]]
        until(lambda: process_queue.try_unlock_times)
        assert queues[1] not in guest.running_info()["mqTable"], "its listener is at work"
        if not does_guest_stay:
            guests_stay.close()
        release.set()
        owner = guest if does_guest_stay else host
        until(lambda: position(owner, queues[1]) == 2)
        until_committed(cluster, f"g-{topic}", topic, {0: 2, 1: 2})
        if does_guest_stay:
            assert queues[1] not in host.running_info()["mqTable"]
    assert sorted([*seen.bodies, *guests.bodies]) == [b"0", b"1", b"2", b"3"]


def test_the_limit_of_a_topic_is_shared_out_among_its_queues(
    cluster: EmbeddedCluster, producer: Producer, make: Make
) -> None:
    send(producer, "limited", [b"0"], queues=4)
    seen = Seen(lambda *_: SUCCESS)
    with make(cluster, "g-limited", seen, "limited", orderly=True, pull_threshold_for_topic=100) as one:
        seen.wait(1)
        until(lambda: member_of(one).queues.threshold == (20, 100 << 20), "there are four, and one of retries")
