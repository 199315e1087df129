"""Push consumers against a broker in this process: each queue in its order."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from rmqfast import EmbeddedCluster, Message, MessageQueue
from rmqfast._native import MessageView
from rmqfast.client.instance import ClientConfig
from rmqfast.client.producer import Producer
from rmqfast.client.push import ConsumeOrderlyContext, ConsumeOrderlyStatus, PushConsumer, in_order
from rmqfast.client.push.orderly_service import ConsumeMessageOrderlyService

from .listening import Seen, committed, consumer, send, until
from .test_push_embedded import impl_of

SUCCESS, SUSPEND = ConsumeOrderlyStatus.SUCCESS, ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
COMMIT, ROLLBACK = ConsumeOrderlyStatus.COMMIT, ConsumeOrderlyStatus.ROLLBACK


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(config={"messageDelayLevel": "1s " * 17 + "1s"}) as running:
        yield running


@pytest.fixture(scope="module")
def producer(cluster: EmbeddedCluster) -> Iterator[Producer]:
    with Producer("sends", name_server=cluster.name_server) as running:
        yield running


def by_queue(messages: Sequence[MessageView]) -> dict[int, list[int]]:
    """The offsets that came, queue by queue."""
    found: dict[int, list[int]] = {}
    for message in messages:
        found.setdefault(message.queue_id, []).append(message.queue_offset)
    return found


def test_each_queue_comes_in_its_order(cluster: EmbeddedCluster, producer: Producer) -> None:
    queues = send(producer, "ordered", [b"%d" % number for number in range(100)], queues=4)
    seen = Seen(lambda *_: SUCCESS)
    with consumer(cluster, "g-ordered", seen, "ordered", orderly=True, consume_message_batch_max_size=3):
        seen.wait(100)
        until(lambda: len(seen.messages) == 100)
        time.sleep(0.05)
    assert by_queue(seen.messages) == {queue: list(range(25)) for queue in range(4)}
    assert committed(cluster, "g-ordered", "ordered") == dict.fromkeys(range(4), 25)
    assert not any(cluster.brokers[0].tables.locks.holder("g-ordered", queue) for queue in queues)


def test_what_is_not_consumed_comes_again_before_all_others(cluster: EmbeddedCluster, producer: Producer) -> None:
    wrong: list[Any] = [SUSPEND, None, "SUCCESS", SystemExit(1)]

    @in_order
    def listen(messages: Sequence[MessageView], context: ConsumeOrderlyContext) -> Any:
        seen(messages, context)
        context.suspend_current_queue_time = 0.01
        times = messages[0].reconsume_times
        if messages[0].queue_offset == 1 and times < len(wrong):
            if isinstance(wrong[times], BaseException):
                raise wrong[times]
            return wrong[times]
        return SUCCESS

    seen = Seen(lambda *_: None)
    send(producer, "again", [b"0", b"1", b"2"])
    with consumer(cluster, "g-again", listen, "again"):
        seen.wait(7)
        time.sleep(0.05)
    assert [(m.queue_offset, m.reconsume_times) for m in seen.messages] == [
        (0, 0),
        (1, 0),
        (1, 1),
        (1, 2),
        (1, 3),
        (1, 4),
        (2, 0),
    ]
    assert committed(cluster, "g-again", "again") == {0: 3}


def test_what_comes_too_often_is_a_dead_letter_and_the_queue_goes_on(
    cluster: EmbeddedCluster, producer: Producer
) -> None:
    send(producer, "stuck", [b"0", b"1"])
    seen = Seen(lambda messages, _: SUSPEND if messages[0].body == b"0" else SUCCESS)
    options = {"max_reconsume_times": 2, "suspend_current_queue_time_millis": 10}
    with consumer(cluster, "g-stuck", seen, "stuck", orderly=True, **options):
        seen.wait(4)
        until(lambda: cluster.brokers[0].tables.topics.get("%DLQ%g-stuck"))
        time.sleep(0.05)
    assert [(m.body, m.reconsume_times) for m in seen.messages] == [(b"0", 0), (b"0", 1), (b"0", 2), (b"1", 0)]
    assert committed(cluster, "g-stuck", "stuck") == {0: 2}


def test_without_auto_commit_the_listener_says_how_far_it_is(cluster: EmbeddedCluster, producer: Producer) -> None:
    offsets: list[int] = []

    def answer(messages: Sequence[MessageView], context: ConsumeOrderlyContext) -> Any:
        context.auto_commit, context.suspend_current_queue_time = False, 0.01
        offsets.append(impl_of(one).memory_offset(queue))
        return (SUCCESS, SUCCESS, ROLLBACK, SUCCESS, SUCCESS, COMMIT, SUCCESS)[len(seen.messages) - 1]

    (queue,) = send(producer, "manual", [b"0", b"1", b"2", b"3"])
    seen = Seen(answer)
    one = consumer(cluster, "g-manual", seen, "manual", orderly=True)
    with one:
        seen.wait(7)
        time.sleep(0.1)
    assert by_queue(seen.messages) == {0: [0, 1, 2, 0, 1, 2, 3]}
    assert max(offsets[:6]) <= 0
    assert offsets[6] == 3
    assert committed(cluster, "g-manual", "manual") == {0: 3}, "3 was not committed"


def test_no_queue_is_in_two_hands_while_members_come_and_go(cluster: EmbeddedCluster, producer: Producer) -> None:
    queues = send(producer, "hands", [], queues=6)
    inside: dict[MessageQueue, str] = {}
    wrong: list[str] = []
    done: dict[str, list[MessageView]] = {}
    guard = threading.Lock()

    def listener(name: str) -> Any:
        def listen(messages: Sequence[MessageView], context: ConsumeOrderlyContext) -> Any:
            with guard:
                if context.queue in inside:
                    wrong.append(f"{context.queue} is consumed by {inside[context.queue]} and {name}")
                inside[context.queue] = name
            time.sleep(0.003)
            with guard:
                del inside[context.queue]
                done.setdefault(name, []).extend(messages)
            return SUCCESS

        return listen

    count = 600
    for number in range(count):
        producer.send(Message("hands", b"%d" % number), queues[number % 6])

    def total() -> int:
        with guard:
            return sum(map(len, done.values()))

    config = ClientConfig(rebalance_interval=0.5)
    first = consumer(cluster, "g-hands", listener("first"), "hands", orderly=True, config=config)
    with first:
        for turn in range(4):
            name = f"guest {turn}"
            with consumer(cluster, "g-hands", listener(name), "hands", orderly=True, config=config):
                until(lambda: done.get(name))  # noqa: B023 - it is waited for in the loop
        until(lambda: {m.body for each in list(done.values()) for m in each} >= {b"%d" % n for n in range(count)})
    assert wrong == []
    # each member sees a queue in its order, whoever had it in between
    for messages in done.values():
        for offsets in by_queue(messages).values():
            assert offsets == sorted(offsets)
    assert committed(cluster, "g-hands", "hands") == dict.fromkeys(range(6), 100)
    assert total() <= count + 6, "what was stored when a queue was given up was all that was done"


def test_locks_are_given_up_at_the_end(cluster: EmbeddedCluster, producer: Producer) -> None:
    send(producer, "locked", [b"0"])
    one, two = Seen(lambda *_: SUCCESS), Seen(lambda *_: SUCCESS)
    first = consumer(cluster, "g-locked", one, "locked", orderly=True)
    with first:
        one.wait(1)
        assert isinstance(impl_of(first).service, ConsumeMessageOrderlyService)
    began = time.monotonic()
    with consumer(cluster, "g-locked", two, "locked", orderly=True):
        producer.send(Message("locked", b"1"), MessageQueue("locked", "broker-a", 0))
        two.wait(1)
    assert time.monotonic() - began < 10, "a lock that is not given up lasts a minute"
    assert two.bodies == [b"1"]


def test_a_broadcast_in_order_needs_no_locks(cluster: EmbeddedCluster, producer: Producer, tmp_path: Any) -> None:
    send(producer, "played", [b"0", b"1", b"2"])
    config = ClientConfig(name_server=cluster.name_server, local_offset_dir=tmp_path)
    members = [Seen(lambda *_: SUCCESS), Seen(lambda *_: SUCCESS)]
    running = []
    for number, seen in enumerate(members):
        one = PushConsumer(
            "g-played",
            config=config,
            instance_name=f"m{number}",
            message_model="BROADCASTING",
            consume_from_where="CONSUME_FROM_FIRST_OFFSET",
        )
        one.subscribe("played")
        one.register_message_listener(seen, orderly=True)
        one.start()
        running.append(one)
    for seen in members:
        seen.wait(3)
    for one in running:
        one.shutdown()
    assert [seen.bodies for seen in members] == [[b"0", b"1", b"2"]] * 2


def test_dead_letters_need_nothing_of_the_program(cluster: EmbeddedCluster, producer: Producer) -> None:
    send(producer, "alone", [b"0"])
    program = f"""
import threading
from rmqfast.client.push import ConsumeOrderlyStatus, PushConsumer, in_order
@in_order
def listen(messages, context):
    return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
consumer = PushConsumer("g-alone", name_server="{cluster.name_server}", max_reconsume_times=0)
consumer.subscribe("alone")
consumer.register_message_listener(listen)
with consumer:
    import time
    end = time.monotonic() + 30
    while not any(offset == 1 for offset in consumer._impl.consumer_status("alone").values()):
        assert time.monotonic() < end
        time.sleep(0.01)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert cluster.brokers[0].tables.topics.get("%DLQ%g-alone")


@pytest.mark.parametrize("does_guest_stay", [True, False])
def test_a_queue_that_a_listener_is_at_work_with_changes_hands_afterwards_or_stays(
    cluster: EmbeddedCluster, producer: Producer, does_guest_stay: bool
) -> None:
    topic = f"busy-{does_guest_stay}"
    queues = send(producer, topic, [b"0", b"1", b"2", b"3"], queues=2)
    release, began = threading.Event(), threading.Event()

    def work(messages: Sequence[MessageView], context: Any) -> Any:
        if context.queue == queues[1] and messages[0].queue_offset == 0:
            began.set()
            assert release.wait(60)
        return SUCCESS

    config = ClientConfig(rebalance_interval=0.3)
    seen, guests = Seen(work), Seen(lambda *_: SUCCESS)
    host = consumer(cluster, f"g-{topic}", seen, topic, orderly=True, config=config)
    guest = consumer(cluster, f"g-{topic}", guests, topic, orderly=True, config=config)
    with host:
        assert began.wait(60)
        guest.start()
        # the host has the first queue or the second: members are sorted by name
        is_busy_lost = host.client_id < guest.client_id
        process_queue = impl_of(host).rebalance.process_queues[queues[1]]
        if is_busy_lost:
            until(lambda: process_queue.try_unlock_times)
            assert queues[1] not in impl_of(guest).rebalance.process_queues, "its listener is at work"
        if not does_guest_stay:
            guest.shutdown()
        release.set()
        until(lambda: sum(map(len, by_queue([*seen.messages, *guests.messages]).values())) >= 4)

        def is_stored() -> bool:
            impl_of(host).persist_consumer_offset()
            return committed(cluster, f"g-{topic}", topic) == {0: 2, 1: 2}

        until(is_stored)
        owners = [impl_of(one).rebalance.process_queues for one in ((host, guest) if does_guest_stay else (host,))]
        until(lambda: sum(queues[1] in owned and not owned[queues[1]].is_dropped for owned in owners) == 1)
    guest.shutdown()
    assert sorted(message.body or b"" for message in [*seen.messages, *guests.messages]) == [b"0", b"1", b"2", b"3"]


def test_the_limit_of_a_topic_is_shared_out_among_its_queues(cluster: EmbeddedCluster, producer: Producer) -> None:
    send(producer, "limited", [b"0"], queues=4)
    seen = Seen(lambda *_: SUCCESS)
    one = consumer(cluster, "g-limited", seen, "limited", orderly=True, pull_threshold_for_topic=100)
    with one:
        seen.wait(1)
        until(lambda: len(impl_of(one).rebalance.process_queues) == 5)
        until(lambda: impl_of(one).thresholds.messages == 20)
    assert impl_of(one).thresholds.mebibytes == 100
