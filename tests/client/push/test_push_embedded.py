"""Push consumers against a broker in this process: in any order."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rmqfast import Admin, EmbeddedCluster, Message
from rmqfast._native import MessageView
from rmqfast.client.consumer.send_back import SendBack
from rmqfast.client.consumer.subscription_watcher import SubscriptionWatcher
from rmqfast.client.producer import Producer
from rmqfast.client.push import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, PushConsumer
from rmqfast.errors import ArgumentError, ClientError
from tests.client.awaited import Face
from tests.client.forks import refused_in_a_fork
from tests.waiting import PATIENCE, until

from .listening import (
    PATIENT,
    Make,
    Seen,
    committed,
    consumer,
    is_there,
    member_of,
    position,
    send,
    until_committed,
)

SUCCESS, LATER = ConsumeConcurrentlyStatus.CONSUME_SUCCESS, ConsumeConcurrentlyStatus.RECONSUME_LATER


def until_pulls_have_ended(cluster: EmbeddedCluster, one: PushConsumer) -> None:
    """Waits until no pull of a consumer that is suspended is in flight, and what came is handled."""

    def have_ended() -> bool:
        cluster.brokers[0].state.data_plane.check_parked_pulls()  # by itself every five seconds
        return member_of(one).queues.is_handled

    until(have_ended)


@pytest.mark.parametrize("batch", [1, 7, 32])
def test_each_message_comes_once_and_offsets_are_stored_at_the_end(
    cluster: EmbeddedCluster, producer: Producer, batch: int, make: Make
) -> None:
    topic, seen = f"all-{batch}", Seen()
    bodies = [b"%d" % number for number in range(160)]
    queues = send(producer, topic, bodies, queues=4)
    sizes: set[int] = set()

    def listen(messages: Sequence[MessageView], context: ConsumeConcurrentlyContext) -> Any:
        sizes.add(len(messages))
        assert {message.queue for message in messages} == {context.queue}
        return seen(messages, context)

    with make(cluster, f"g-{topic}", listen, topic, consume_message_batch_max_size=batch):
        seen.wait(160)
        # behind them comes what is sent now: nothing of them comes once more
        for queue in queues:
            producer.send(Message(topic, b"late"), queue, PATIENCE)
        seen.wait(164)
    assert sorted(seen.bodies) == sorted([*bodies, *[b"late"] * 4])
    assert max(sizes) == batch
    until_committed(cluster, f"g-{topic}", topic, dict.fromkeys(range(4), 41))


def test_tags_are_filtered_and_offsets_pass_over_what_nobody_wants(
    cluster: EmbeddedCluster, producer: Producer, make: Make
) -> None:
    queues = send(producer, "tagged", [], queues=2)
    for tag, queue in zip("AABBB", (0, 0, 1, 1, 1), strict=True):
        producer.send(Message("tagged", tag.encode(), tags=tag), queues[queue], PATIENCE)
    seen = Seen()
    one = make(cluster, "g-tagged", seen)
    one.subscribe("tagged", "A || C")
    with one:
        seen.wait(2)
        until(lambda: [position(one, queue) for queue in queues] == [2, 3])
    assert seen.bodies == [b"A", b"A"]
    until_committed(cluster, "g-tagged", "tagged", {0: 2, 1: 3})


def test_what_a_listener_does_not_acknowledge_comes_again_and_is_a_dead_letter_at_the_end(
    cluster: EmbeddedCluster, producer: Producer, make: Make
) -> None:
    send(producer, "chaos", [b"good", b"late", b"hopeless"], keys="k")

    def answer(messages: Sequence[MessageView], _context: Any) -> Any:
        (message,) = messages
        is_done = message.body == b"good" or (message.body == b"late" and message.reconsume_times)
        return SUCCESS if is_done else LATER

    seen, dead = Seen(answer), Seen()
    with make(cluster, "g-chaos", seen, "chaos", max_reconsume_times=1):
        seen.wait(5)
        until(lambda: is_there(producer, "%DLQ%g-chaos"))
        with make(cluster, "g-dead", dead, "%DLQ%g-chaos"):
            dead.wait(1)
    assert Counter(seen.bodies) == {b"good": 1, b"late": 2, b"hopeless": 2}
    first = {message.body: message.msg_id for message in seen.messages if not message.reconsume_times}
    again = [message for message in seen.messages if message.reconsume_times]
    assert {message.topic for message in again} == {"chaos"}
    assert {message.reconsume_times for message in again} == {1}
    assert {message.body: message.msg_id for message in again} == {body: first[body] for body in (b"late", b"hopeless")}
    assert dead.bodies == [b"hopeless"]
    until_committed(cluster, "g-chaos", "chaos", {0: 3})


def test_a_group_of_the_longest_name_is_known_and_told_what_it_does_not_have(
    cluster: EmbeddedCluster, producer: Producer, caplog: pytest.LogCaptureFixture, make: Make
) -> None:
    send(producer, "long-named", [b"x"])
    group, seen = "g" * 255, Seen()
    with (
        Admin(name_server=cluster.name_server) as admin,
        make(cluster, "g" * 120, Seen(), "long-named"),
        make(cluster, group, seen, "long-named") as one,
    ):
        seen.wait(1)
        until(lambda: f"%RETRY%{group}" in admin.topics.all())
        assert admin.groups.connections(group).client_ids == [one.client_id]
    warnings = [record for record in caplog.records if "store neither retries nor" in record.message]
    assert [record.args[1] for record in warnings if isinstance(record.args, tuple)] == [255]


def test_members_of_a_broadcast_get_all_messages_each_and_go_on_where_they_were(
    cluster: EmbeddedCluster, producer: Producer, tmp_path: Path, make: Make
) -> None:
    queues = send(producer, "news", [b"0", b"1", b"2"], queues=2)

    def member(listener: Any, name: str) -> PushConsumer:
        config = replace(PATIENT, local_offset_dir=tmp_path, instance_name=name)
        where: dict[str, Any] = {
            "message_model": "BROADCASTING",
            "consume_from_where": "CONSUME_FROM_FIRST_OFFSET",
        }
        return make(cluster, "g-news", listener, "news", config=config, **where)

    one, two, again = Seen(lambda *_: LATER), Seen(), Seen()
    with member(one, "one"), member(two, "two"):
        one.wait(3)
        two.wait(3)
    producer.send(Message("news", b"3"), queues[1], PATIENCE)
    with member(again, "one") as running:
        again.wait(1)
        until(lambda: [position(running, queue) for queue in queues] == [2, 2])
    assert sorted(one.bodies) == sorted(two.bodies) == [b"0", b"1", b"2"]
    assert again.bodies == [b"3"]
    assert committed(cluster, "g-news", "news") == {}
    (path,) = tmp_path.glob("*@one/g-news/offsets.json")
    assert "offsetTable" in path.read_text()


def test_a_shutdown_in_the_middle_leaves_what_is_not_done_to_others(
    cluster: EmbeddedCluster, producer: Producer, make: Make
) -> None:
    send(producer, "handed", [b"%d" % number for number in range(90)], queues=3)
    calls, release = itertools.count(), threading.Event()
    done: dict[int, set[int]] = defaultdict(set)

    def answer(messages: Sequence[MessageView], _context: Any) -> Any:
        if next(calls) < 20:
            done[messages[0].queue_id].add(messages[0].queue_offset)
        else:
            release.wait(PATIENCE)
        return SUCCESS

    def stored() -> list[int]:
        offsets = committed(cluster, "g-handed", "handed")
        return [offsets.get(queue, 0) for queue in range(3)]

    one, two = Seen(answer), Seen()
    options = {"consume_thread_min": 4, "await_termination_millis_when_shutdown": 0}
    with make(cluster, "g-handed", one, "handed", **options):
        one.wait(24)  # all threads hang: what they did before is noted
    release.set()
    first = [min(set(range(31)) - done[queue]) for queue in range(3)]
    until(lambda: stored() == first, stored)
    with make(cluster, "g-handed", two, "handed"):
        two.wait(90 - sum(first))
    until_committed(cluster, "g-handed", "handed", dict.fromkeys(range(3), 30))
    left = [(queue, offset) for queue in range(3) for offset in range(first[queue], 30)]
    assert sorted((message.queue_id, message.queue_offset) for message in two.messages) == left


def test_a_listener_that_takes_too_long_loses_its_message_to_another_call(
    cluster: EmbeddedCluster, producer: Producer, make: Make
) -> None:
    release = threading.Event()

    def hang(messages: Sequence[MessageView], _context: Any) -> Any:
        if messages[0].body == b"hangs" and not messages[0].reconsume_times:
            release.wait(PATIENCE)
        return SUCCESS

    seen = Seen(hang)
    (queue,) = send(producer, "hanging", [b"hangs", b"next"])
    one = make(cluster, "g-hanging", seen, "hanging", consume_timeout=0.1 / 60, consume_thread_min=2)
    with one:
        until(lambda: any(message.reconsume_times for message in seen.messages if message.body == b"hangs"))
        until(lambda: one.running_info()["mqTable"][queue]["cachedMsgCount"] == 0)
        release.set()


def test_a_suspended_consumer_pulls_nothing_until_it_is_resumed(
    cluster: EmbeddedCluster, producer: Producer, make: Make
) -> None:
    (queue,) = send(producer, "suspended", [b"0"])
    seen = Seen()
    with make(cluster, "g-suspended", seen, "suspended", pull_suspend_millis=1) as one:
        seen.wait(1)
        one.suspend()
        until_pulls_have_ended(cluster, one)
        producer.send(Message("suspended", b"1"), queue, PATIENCE)
        until_pulls_have_ended(cluster, one)
        assert member_of(one).rebalance.process_queues[queue].queue_offset_max == 0, "the second one was not pulled"
        one.resume()
        seen.wait(2)
    assert seen.bodies == [b"0", b"1"]


def test_topics_come_and_go_while_it_runs(cluster: EmbeddedCluster, producer: Producer, make: Make) -> None:
    send(producer, "here", [b"here"])
    send(producer, "there", [b"there"])
    seen = Seen()
    config = replace(PATIENT, rebalance_interval=0.05)
    with make(cluster, "g-topics", seen, "here", config=config) as one:
        seen.wait(1)
        one.subscribe("there")
        seen.wait(2)
        one.unsubscribe("here")
        until(lambda: {queue.topic for queue in one.running_info()["mqTable"]} == {"there", "%RETRY%g-topics"})
    assert seen.bodies == [b"here", b"there"]


def test_an_offset_outside_of_the_queue_is_mended(cluster: EmbeddedCluster, producer: Producer, make: Make) -> None:
    (queue,) = send(producer, "outside", [b"0", b"1"])
    cluster.brokers[0].state.data_plane.commit_offset("g-outside", "outside", 0, 1000)
    seen = Seen()
    one = make(cluster, "g-outside", seen, "outside")
    with one:
        until_committed(cluster, "g-outside", "outside", {0: 2})
        producer.send(Message("outside", b"2"), queue, PATIENCE)
        seen.wait(1)
    assert seen.bodies == [b"2"]


def test_a_broker_resets_offsets(cluster: EmbeddedCluster, producer: Producer, make: Make) -> None:
    (queue,) = send(producer, "reset", [b"0", b"1", b"2"])
    seen = Seen()
    one = make(cluster, "g-reset", seen, "reset")
    with one:
        seen.wait(3)
        until(lambda: position(one, queue) == 3)
        member_of(one).reset_offset("reset", {queue: 1})
        seen.wait(5)
    assert sorted(seen.bodies[3:]) == [b"1", b"2"]


def test_what_it_does_is_told_in_javas_words(cluster: EmbeddedCluster, producer: Producer, make: Make) -> None:
    (queue,) = send(producer, "told", [b"0", b"1"])
    seen = Seen()
    one = make(cluster, "g-told", seen, "told", consume_thread_min=3)
    with one:
        seen.wait(2)
        until(lambda: position(one, queue) == 2)
        told = member_of(one).consume_message_directly(seen.messages[0], "broker-a")
        assert told["consumeResult"] == "CR_SUCCESS", "which changes nothing of what follows"
        info = one.running_info()
    properties = info["properties"]
    assert properties["PROP_CONSUMEORDERLY"] == "false"
    assert (properties["PROP_THREADPOOL_CORE_SIZE"], properties["consumeThreadMin"]) == ("3", "3")
    assert properties["PROP_CONSUMER_START_TIMESTAMP"].isdigit()
    assert [each["topic"] for each in info["subscriptionSet"]] == ["%RETRY%g-told", "told"]
    assert info["mqTable"][queue]["commitOffset"] == 2
    assert info["statusTable"]["told"]["consumeOKTPS"] == 2 / 60
    assert info["statusTable"]["told"]["pullTPS"] == 2 / 60
    assert json.dumps(info["statusTable"])


def test_a_message_that_no_broker_takes_back_is_sent_anew(
    cluster: EmbeddedCluster, producer: Producer, make: Make
) -> None:
    send(producer, "anew", [b"0"], tags="T", keys="k", properties={"own": "value"})
    seen = Seen()
    with make(cluster, "g-anew", seen, "anew") as one:
        seen.wait(1)
        sent = seen.messages[0]
        assert SendBack(member_of(one).instance, one.group, 16).is_sent(sent, 0, "no such broker")
        seen.wait(2)
    again = seen.messages[1]
    assert (again.topic, again.body, again.tags, again.keys) == ("anew", b"0", "T", "k")
    assert (again.msg_id, again.property("own"), again.reconsume_times) == (sent.msg_id, "value", 1)
    assert again.property("ORIGIN_MESSAGE_ID") == sent.msg_id


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"consume_thread_min": 0}, r"consumeThreadMin Out of range \[1, 1000\]"),
        ({"consume_thread_min": 30}, r"consumeThreadMin \(30\) is larger than consumeThreadMax \(20\)"),
        ({"pull_batch_size": 1025}, r"pullBatchSize Out of range \[1, 1024\]"),
        ({"pull_threshold_for_topic": 0}, r"pullThresholdForTopic Out of range \[1, 6553500\]"),
        ({"consume_timestamp": "yesterday"}, "consumeTimestamp is invalid, .*but received yesterday"),
        ({"message_model": "ALL"}, "messageModel is null"),
        ({"consume_from_where": "ELSEWHERE"}, "consumeFromWhere is null"),
    ],
)
def test_what_cannot_be_is_said_in_javas_words(face: Face, options: dict[str, Any], text: str) -> None:
    one = face(PushConsumer)("g-wrong", name_server="127.0.0.1:1", **options)
    one.register_message_listener(Seen())
    with pytest.raises(ClientError, match=text):
        one.start()


def test_what_cannot_be_consumed_or_called_is_said(face: Face) -> None:
    one = face(PushConsumer)("g-wrong", name_server="127.0.0.1:1")
    with pytest.raises(ClientError, match=r"^subscription exception"):
        one.subscribe("")
    with pytest.raises(ClientError, match=r"^subscription exception"):
        one.subscribe("t", "||")
    with pytest.raises(ArgumentError, match="expected something to call, got 7"):
        one.register_message_listener(7)  # type: ignore[arg-type]


def test_a_consumer_is_started_once_and_needs_a_listener(face: Face, cluster: EmbeddedCluster, make: Make) -> None:
    with pytest.raises(ClientError, match="messageListener is null"):
        face(PushConsumer)("g-once", name_server=cluster.name_server).start()
    with (
        make(cluster, "g-once", Seen(), "once") as one,
        pytest.raises(ClientError, match="maybe started once, RUNNING"),
    ):
        one.start()
    one.shutdown()
    with pytest.raises(ClientError, match="maybe started once, SHUTDOWN_ALREADY"):
        one.start()


def test_the_threads_of_a_consumer_end_with_it(cluster: EmbeddedCluster, make: Make) -> None:
    def running() -> set[str]:
        return {thread.name for thread in threading.enumerate() if "g-threads" in thread.name}

    with make(cluster, "g-threads", Seen(), "threads"):
        assert len(running()) == 22, "20 that consume, one that looks whether they suffice, and one that pulls"
    until(lambda: not running())


def test_a_program_that_ends_with_running_consumers_ends_by_itself_and_needs_no_producer_for_dead_letters(
    rmqfast_cluster: EmbeddedCluster,
) -> None:
    with Producer("sends", name_server=rmqfast_cluster.name_server) as producer:
        send(producer, "left", [b"0"])
        send(producer, "left-in-order", [b"0", b"1"])
    program = f"""
import logging, threading
logging.basicConfig(level=logging.ERROR)  # what is in flight when all ends is no fault
from rmqfast.client.push import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus, PushConsumer, in_order

came, came_in_order = threading.Event(), threading.Event()

def listen(messages, context):
    came.set()
    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

@in_order
def listen_in_order(messages, context):
    if messages[0].body == b"0":  # becomes a dead letter before the next one comes
        return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
    came_in_order.set()
    return ConsumeOrderlyStatus.SUCCESS

def start(topic, listener, **options):
    consumer = PushConsumer(f"g-{{topic}}", name_server="{rmqfast_cluster.name_server}", **options)
    consumer.subscribe(topic)
    consumer.register_message_listener(listener)
    consumer.start()

start("left", listen, await_termination_millis_when_shutdown=60_000)
start("left-in-order", listen_in_order, max_reconsume_times=0)
assert came.wait({PATIENCE}) and came_in_order.wait({PATIENCE})
"""
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=3 * PATIENCE, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert rmqfast_cluster.brokers[0].state.topics.get("%DLQ%g-left-in-order")
    until_committed(rmqfast_cluster, "g-left", "left", {0: 1})


def test_a_fork_of_a_consumer_says_so_and_ends_nothing_of_its_parent(rmqfast_cluster: EmbeddedCluster) -> None:
    seen = Seen()
    with Producer("sends", name_server=rmqfast_cluster.name_server) as producer:
        (queue,) = send(producer, "forked", [b"0"])
        with consumer(rmqfast_cluster, "g-forked", seen, "forked") as one:
            seen.wait(1)
            assert "is that of a parent process" in refused_in_a_fork(one.suspend, one.shutdown)
            producer.send(Message("forked", b"1"), queue, PATIENCE)
            seen.wait(2)


def test_without_a_name_server_the_start_says_so_and_leaves_nothing(face: Face) -> None:
    one = face(PushConsumer)("g-nowhere", name_server="127.0.0.1:1")
    one.subscribe("t")
    one.register_message_listener(Seen())
    with pytest.raises(ClientError, match=r"127\.0\.0\.1:1"):
        one.start()
    until(lambda: not any("g-nowhere" in thread.name for thread in threading.enumerate()))
    with pytest.raises(ClientError, match="START_FAILED"):
        one.start()


def test_a_wrong_option_is_said_with_those_there_are(face: Face) -> None:
    with pytest.raises(ArgumentError, match=r"argument 'consume_threads': did you mean consume_thread_min"):
        face(PushConsumer)("g", name_server="127.0.0.1:1", consume_threads=4)  # type: ignore[call-arg]


def test_offsets_may_be_set_and_queues_be_looked_at(cluster: EmbeddedCluster, producer: Producer, make: Make) -> None:
    queues = send(producer, "set", [b"0", b"1"], queues=2)
    seen = Seen()
    with make(cluster, "g-set", seen, "set", pull_suspend_millis=1) as one:
        seen.wait(2)
        assert one.fetch_subscribe_message_queues("set") == queues
        with pytest.raises(ClientError, match=r"The topic\[unknown\] not exist"):
            one.fetch_subscribe_message_queues("unknown")
        until(lambda: [position(one, queue) for queue in queues] == [1, 1])
        one.suspend()  # a pull in flight would tell the broker, or note here, what was the offset before
        until_pulls_have_ended(cluster, one)
        one.update_consume_offset(queues[1], 0)
    until_committed(cluster, "g-set", "set", {0: 1, 1: 0})
    with pytest.raises(ClientError, match="The consumer is not in running status, SHUTDOWN_ALREADY"):
        one.update_consume_offset(queues[1], 0)


def test_a_listener_uses_its_consumer_before_the_start_is_over(
    cluster: EmbeddedCluster, producer: Producer, monkeypatch: pytest.MonkeyPatch, make: Make
) -> None:
    send(producer, "early", [b"0"])
    told, was_told = list[str](), threading.Event()

    def answer(_messages: Sequence[MessageView], _context: Any) -> ConsumeConcurrentlyStatus:
        try:
            told.append(one.client_id)
            told.append(one.running_info()["properties"]["consumerGroup"])
        finally:
            was_told.set()
        return SUCCESS

    # the last step of a start
    monkeypatch.setattr(SubscriptionWatcher, "start", lambda *_: was_told.wait(PATIENCE))
    one = make(cluster, "g-early", Seen(answer), "early")
    with one:
        assert told == [one.client_id, "g-early"]
    assert one.client_id == told[0]


def test_a_namespace_stands_before_topics_and_groups_and_no_listener_sees_it(
    cluster: EmbeddedCluster, make: Make
) -> None:
    seen = Seen(lambda messages, _: SUCCESS if messages[0].reconsume_times else LATER)
    with Producer("spaced", name_server=cluster.name_server, namespace="ns") as producer:
        send(producer, "spaced", [b"0"])
    with make(cluster, "g-spaced", seen, "spaced", namespace="ns") as one:
        seen.wait(2)
        assert one.group == "ns%g-spaced"
    assert [(message.topic, message.reconsume_times) for message in seen.messages] == [("spaced", 0), ("spaced", 1)]
    until_committed(cluster, "ns%g-spaced", "ns%spaced", {0: 1})
