"""The same answers as mqadmin's, and article 004's outcomes with Java's consumers, on RocketMQ's brokers and ours."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from subprocess import Popen
from threading import Thread
from typing import Any

import pytest

from rmqfast import Message, MessageQueue
from rmqfast.admin import Admin, MessageTrack, Outcome, TrackType
from rmqfast.client.producer import Producer
from rmqfast.errors import ResponseError
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from tests.broker.interop.cluster import Cluster, RealCluster, version_of
from tests.broker.interop.mqadmin import Admin as MqAdmin
from tests.interop.rocketmq import running
from tests.waiting import until as patient

from .members import is_newest_kept, online, online_members, wants

pytestmark = [pytest.mark.long, pytest.mark.soak, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def admin(each_cluster: Cluster) -> Iterator[Admin]:
    with Admin(name_server=each_cluster.name_server, timeout=20) as started:
        yield started


@pytest.fixture(scope="module")
def producer(each_cluster: Cluster) -> Iterator[Producer]:
    with Producer("real_admin", name_server=each_cluster.name_server) as started:
        yield started


#: Waits as `until` does, and longer: other programs start meanwhile, and clients ask for routes now and then.
until = partial(patient, patience=180.0)


def is_ours(each_cluster: Cluster) -> bool:
    return not isinstance(each_cluster, RealCluster)


def newest_version(admin: Admin, group: str, topic: str) -> int:
    """When the subscription was made by which the broker filters, in milliseconds since 1970."""
    return admin.groups.connections(group).subscriptions[topic].sub_version


def printed_track(each_cluster: Cluster, mqadmin: MqAdmin, message: Any) -> str:
    """What mqadmin prints of a message and its track."""
    topic = ["-t", message.topic] if version_of(each_cluster).startswith("5") else []
    return mqadmin(["queryMsgById", "-i", message.offset_msg_id, *topic])


def track_of(admin: Admin, message: Any, group: str) -> MessageTrack:
    """The track of a group; 5.3.3 lists the topic's name among the groups, too."""
    (track,) = [track for track in admin.messages.track(message) if track.group == group]
    return track


def table(text: str, first: str) -> list[list[str]]:
    """The rows of a table that mqadmin printed, of which the first cell is `first`."""
    return [words for line in text.splitlines() if (words := line.split()) and words[0] == first]


def java_consumer(each_cluster: Cluster, stack: ExitStack, log: Path, *words: object) -> list[dict[str, Any]]:
    """A consumer of Java while the stack is open; what it gets is appended to the list."""
    got: list[dict[str, Any]] = []
    to = ("--namesrv", each_cluster.name_server, "--idle-ms", 600_000, "--timeout-ms", 600_000)
    process = stack.enter_context(running("4.9.4", "Consume", *to, *words, log=log))

    def read(process: Popen[str]) -> None:
        assert process.stdout is not None
        got.extend(map(json.loads, process.stdout))  # one after the other, as they come

    Thread(target=read, args=(process,), daemon=True).start()
    return got


def test_topics_queues_and_brokers_are_those_that_mqadmin_prints(
    each_cluster: Cluster, admin: Admin, mqadmin: MqAdmin, producer: Producer
) -> None:
    admin.create_topic("real_topic", queues=3)
    sent = [producer.send(Message("real_topic", b"x", tags="t", keys="k1")) for _ in range(5)]
    lines = [line.split() for line in mqadmin(["topicList"]).splitlines()]  # 5.x logs there, too
    assert sorted({words[0] for words in lines if len(words) == 1}) == admin.topics.all()
    printed = table(mqadmin(["topicStatus", "-t", "real_topic"]), "broker-a")
    rows = [
        [row.broker_name, *map(str, (row.queue_id, row.min_offset, row.max_offset))]
        for row in admin.topics.status("real_topic")
    ]
    assert [words[:4] for words in printed] == rows
    (broker,) = admin.clusters.brokers()
    (words,) = table(mqadmin(["clusterList"]), "DefaultCluster")
    stats = admin.brokers.status("broker-a")
    assert words[:5] == [broker.cluster, broker.broker_name, "0", broker.address, stats["brokerVersionDesc"]]
    config = dict(
        line.split("=", 1) if "  =  " not in line else line.split("  =  ", 1)
        for line in mqadmin(["getBrokerConfig", "-b", broker.address]).splitlines()
        if "=" in line and not line.startswith("=")
    )
    printed_config = {key.strip(): value.strip() for key, value in config.items()}
    ours = {key: value.strip() for key, value in admin.brokers.config("broker-a").items()}
    assert {key: value for key, value in ours.items() if printed_config.get(key) != value} == {}
    by_key = mqadmin(["queryMsgByKey", "-t", "real_topic", "-k", "k1"])
    found = admin.messages.by_key("real_topic", "k1")
    assert len(found) == 5
    assert all(message.msg_id in by_key for message in found)
    assert {message.msg_id for message in found} == {each.msg_id for each in sent}
    message = admin.view_message(sent[0].offset_msg_id)
    assert admin.view_message(message.msg_id, "real_topic") == message
    assert admin.messages.by_offset(message.queue, message.queue_offset) == message
    admin.topics.update("real_topic", queues=4)
    assert [row.queue_id for row in admin.topics.status("real_topic")] == [0, 1, 2, 3]


def test_groups_are_made_changed_and_removed(each_cluster: Cluster, admin: Admin) -> None:
    admin.create_group("real_group", retry_max_times=3)
    until(lambda: admin.groups.all()["real_group"].retry_max_times == 3)
    admin.groups.update("real_group", retry_queue_nums=2)
    assert (admin.groups.all()["real_group"].retry_max_times, admin.groups.all()["real_group"].retry_queue_nums) == (
        3,
        2,
    )
    if version_of(each_cluster).startswith(
        "5"
    ):  # a broker of 5.3.3 without timer wheel fails behind the removal of a topic
        with pytest.raises(ResponseError, match="getTimerMetrics"):
            admin.groups.delete("real_group")
    else:
        admin.groups.delete("real_group")
    if version_of(each_cluster) == "5.5.0":  # it looks whether what is gone was a lite group, and so makes it anew
        assert admin.groups.all()["real_group"].retry_max_times == 16
    else:
        assert "real_group" not in admin.groups.all()


def test_progress_and_resets_are_those_that_mqadmin_prints(
    each_cluster: Cluster, admin: Admin, mqadmin: MqAdmin, producer: Producer
) -> None:
    topic, group = "real_progress", "real_progressing"
    admin.create_topic(topic, queues=2)
    queues = [MessageQueue(topic, "broker-a", number) for number in range(2)]
    until(lambda: len(producer.fetch_publish_message_queues(topic)) == 2)
    for number in range(6):
        producer.send(Message(topic, b"%d" % number), queues[number % 2])
    with online(each_cluster.name_server, "m1", group, [wants(topic, "*"), wants(f"%RETRY%{group}", "*")]) as client_id:
        admin.offsets.reset(group, queues[0], 2, force=True)
        admin.offsets.reset(group, queues[1], 1, force=True)
        until(lambda: f"%RETRY%{group}" in admin.topics.all())
        printed = table(mqadmin(["consumerProgress", "-g", group]), topic)
        rows = [row for row in admin.groups.progress(group) if row.topic == topic]
        assert [words[1:5] for words in printed] == [
            [row.broker_name, *map(str, (row.queue_id, row.broker_offset, row.consumer_offset))] for row in rows
        ]
        assert [(row.broker_offset, row.consumer_offset) for row in rows] == [(3, 2), (3, 1)]
        known = admin.groups.connections(group)
        printed_text = mqadmin(["consumerConnection", "-g", group])
        assert known.client_ids == [client_id]
        assert client_id in printed_text
        assert f"ConsumeType: {known.consume_type}" in printed_text
        assert admin.groups.running_info(group, client_id).subscriptions[topic].sub_string == "*"
        assert admin.offsets.reset_to_begin(group, topic) == {queues[0]: 0, queues[1]: 0}
    until(lambda: not online_members(admin, group))
    assert admin.offsets.reset_to_end(group, topic) == {queues[0]: 3, queues[1]: 3}
    assert admin.groups.progress(group, topic).diff_total == 0
    mqadmin(["resetOffsetByTime", "-g", group, "-t", topic, "-s", "0"])
    assert [row.consumer_offset for row in admin.groups.progress(group, topic)] == [0, 0]
    assert admin.offsets.reset_to_end(group, topic) == {queues[0]: 3, queues[1]: 3}
    admin.create_group("real_copy")
    assert admin.offsets.clone(group, "real_copy", topic) == {queues[0]: 3, queues[1]: 3}


def test_the_eight_messages_of_article_004_with_javas_consumers(
    each_cluster: Cluster, admin: Admin, mqadmin: MqAdmin, producer: Producer, tmp_path: Path
) -> None:
    topic, group = "real_article", "real_inconsistent"
    admin.create_topic(topic, queues=4)
    queues = [MessageQueue(topic, "broker-a", number) for number in range(4)]
    with ExitStack() as stack:
        words = ("--topic", topic, "--group", group)
        members = {tag: stack.enter_context(ExitStack()) for tag in ("TagA", "TagB")}
        got = [
            java_consumer(each_cluster, own, tmp_path / tag, *words, "--expr", tag, "--instance", f"wants_{tag}")
            for tag, own in members.items()
        ]

        def owners() -> list[str | None]:
            told = [admin.explain(queue, group) for queue in queues]
            return [part.queue.owner for part in told if part.queue is not None]

        until(lambda: len(online_members(admin, group)) == 2 if f"%RETRY%{group}" in admin.topics.all() else False)
        until(lambda: len({owner for owner in owners() if owner}) == 2 and None not in owners())
        until(lambda: is_newest_kept(admin, group, topic))
        # Without a ledger, a message that may be older than the subscription by a member's clock proves nothing, and
        # of that clock only the age of its last pull is known.
        until(lambda: is_ours(each_cluster) or time.time() * 1000 - newest_version(admin, group, topic) > 30_000)
        (conflict,) = admin.groups.subscription_conflicts(group)
        kept = admin.groups.connections(group).subscriptions[topic].sub_string
        assert sorted(conflict.expressions.values()) == ["TagA", "TagB"]
        held = owners()
        other = next(name for name, expression in conflict.expressions.items() if expression != kept)
        (whole, *own) = [each for each in admin.explain(group).subscriptions if each.topic == topic]
        assert whole.subscription is not None
        assert (whole.client_id, whole.subscription.sub_string) == (None, kept)
        assert {each.client_id: each.differs for each in own} == {name: name == other for name in conflict.expressions}
        sent = [producer.send(Message(topic, b"B%d" % n, tags=kept), queue) for n, queue in enumerate(queues * 2)]
        messages = [admin.view_message(each.offset_msg_id) for each in sent]
        until(lambda: admin.groups.progress(group, topic).diff_total == 0)
        told = [admin.explain(message, group) for message in messages]

        lost = {m.body for m, each in zip(messages, told, strict=True) if each.outcome is Outcome.LOST}
        consumed = {m.body for m, each in zip(messages, told, strict=True) if each.outcome is Outcome.CONSUMED}
        received = {message.msg_id for message in messages if message.body in consumed}
        until(lambda: {line["msgId"] for lines in got for line in lines} == received)
        assert lost == {m.body for m in messages if held[m.queue_id] == other}
        assert (len(lost), len(consumed)) == (4, 4)
        assert other in next(each for each in told if each.outcome is Outcome.LOST).sentence
        for message in messages[:5]:
            track = track_of(admin, message, group)
            assert track.track_type is TrackType.CONSUMED
            printed = printed_track(each_cluster, mqadmin, message)
            assert re.search(rf"consumerGroup={group}, trackType={track.track_type}", printed), printed

        unwanted = "TagA" if kept == "TagB" else "TagB"
        result = producer.send(Message(topic, b"A", tags=unwanted), queues[0])
        message = admin.view_message(result.offset_msg_id)
        until(lambda: admin.explain(message, group).outcome is not Outcome.NOT_CONSUMED_YET)
        assert admin.explain(message, group).outcome is Outcome.LOST
        assert track_of(admin, message, group).track_type is TrackType.CONSUMED_BUT_FILTERED
        assert "CONSUMED_BUT_FILTERED" in printed_track(each_cluster, mqadmin, message)

        members[
            kept
        ].close()  # it takes what it had consumed with it: the other's subscription is the group's, and newer
        until(lambda: owners() == [other] * 4 and is_newest_kept(admin, group, topic))
        # Only our broker remembers.
        afterwards = {Outcome.CONSUMED, Outcome.LOST} if is_ours(each_cluster) else {Outcome.UNKNOWN}
        assert {admin.explain(message, group).outcome for message in messages} == afterwards
    until(lambda: not online_members(admin, group))
    assert track_of(admin, messages[0], group).track_type is TrackType.NOT_ONLINE
    assert "NOT_ONLINE" in printed_track(each_cluster, mqadmin, messages[0])
    assert {admin.explain(message, group).outcome for message in messages} == afterwards


def test_a_message_that_javas_consumer_sends_back_is_in_retry_and_then_dead(
    each_cluster: Cluster, admin: Admin, producer: Producer, tmp_path: Path
) -> None:
    topic, group = "real_retry", "real_retrying"
    admin.create_topic(topic, queues=1)
    seen = set()
    with ExitStack() as stack:
        words = ("--topic", topic, "--group", group, "--fail", "later", "--max-reconsume", 1)
        java_consumer(each_cluster, stack, tmp_path / "log", *words)
        until(lambda: f"%RETRY%{group}" in admin.topics.all())
        message = admin.view_message(producer.send(Message(topic, b"x")).offset_msg_id)

        def is_dead() -> bool:
            told = admin.explain(message, group)
            seen.add(told.outcome)
            # without a ledger, a reset since is excluded only once the member's clock is known to be right
            return told.outcome in {Outcome.DEAD_LETTER, Outcome.UNKNOWN} and "consumed in vain 2" in told.sentence

        until(is_dead)
        assert Outcome.IN_RETRY in seen
        assert admin.explain(message, group).sentence.startswith("consumed in vain 2 times, %DLQ%")


def test_a_dead_letter_of_javas_consumer_is_consumed_once_more(
    each_cluster: Cluster, admin: Admin, producer: Producer, tmp_path: Path
) -> None:
    topic, group = "real_dead", "real_giving_up"
    admin.create_topic(topic, queues=1)
    until(lambda: producer.fetch_publish_message_queues(topic))
    words = ("--topic", topic, "--group", group)
    with ExitStack() as stack:
        java_consumer(each_cluster, stack, tmp_path / "log", *words, "--fail", "later", "--max-reconsume", 1)
        until(lambda: online_members(admin, group) if f"%RETRY%{group}" in admin.topics.all() else False)
        sent = producer.send(Message(topic, b"x", tags="t", keys="k"))
        until(lambda: f"%DLQ%{group}" in admin.topics.all() and admin.dead_letters.of_group(group))
    (letter,) = admin.dead_letters.of_group(group)
    assert (letter.msg_id, letter.body, letter.properties["RETRY_TOPIC"]) == (sent.msg_id, b"x", topic)
    with ExitStack() as stack:
        got = java_consumer(each_cluster, stack, tmp_path / "again", *words)
        assert admin.dead_letters.resend(letter).queue.topic == f"%RETRY%{group}"
        until(lambda: got)
    assert [(line["msgId"], line["topic"], line["tags"]) for line in got] == [(sent.msg_id, topic, "t")]


def test_what_is_skipped_copied_and_configured_is_what_mqadmin_does(
    each_cluster: Cluster, admin: Admin, mqadmin: MqAdmin, producer: Producer
) -> None:
    topic, group = "real_skip", "real_skipping"
    admin.create_topic(topic, queues=1)
    queue = MessageQueue(topic, "broker-a", 0)
    until(lambda: producer.fetch_publish_message_queues(topic))
    for name in (group, "real_twin"):
        admin.create_group(name)
    for _ in range(3):
        producer.send(Message(topic, b"x"))

    def printed_producers() -> str:
        return mqadmin(["producerConnection", "-g", "real_admin", "-t", topic])

    until(lambda: "not exist" not in printed_producers())
    (known,) = admin.groups.producer_connections("real_admin", topic)
    printed = printed_producers()
    assert known.client_id in printed
    assert known.client_addr in printed
    for skip in (lambda: admin.offsets.reset_to_end(group, topic), lambda: mqadmin_skip(mqadmin, group, topic)):
        admin.offsets.reset(group, queue, 1)
        skip()
        assert admin.groups.progress(group, topic)[0].consumer_offset == 3
    with online(each_cluster.name_server, "s1", group, [wants(topic, "*"), wants(f"%RETRY%{group}", "*")]):
        until(lambda: f"%RETRY%{group}" in admin.topics.all())
        mqadmin(["cloneGroupOffset", "-s", group, "-d", "real_twin", "-t", topic, "-o", "true"])
    theirs = admin.groups.progress("real_twin", topic)[0].consumer_offset
    assert admin.offsets.clone(group, "real_twin", topic) == {queue: theirs}
    mqadmin(["updateBrokerConfig", "-b", each_cluster.broker, "-k", "transactionCheckMax", "-v", "16"])
    assert admin.brokers.config("broker-a")["transactionCheckMax"] == "16"
    admin.brokers.update_config("broker-a", {"transactionCheckMax": 15})
    assert re.search(r"transactionCheckMax\s*=\s*15\b", mqadmin(["getBrokerConfig", "-b", each_cluster.broker]))


def mqadmin_skip(mqadmin: MqAdmin, group: str, topic: str) -> str:
    return mqadmin(["skipAccumulatedMessage", "-g", group, "-t", topic])


def test_a_broadcasting_group_has_a_type_of_its_own_with_5(
    each_cluster: Cluster, admin: Admin, mqadmin: MqAdmin, producer: Producer
) -> None:
    topic, group = "real_broad", "real_casting"
    admin.create_topic(topic, queues=1)
    wanted = [wants(topic, "*")]
    with online(each_cluster.name_server, "b1", group, wanted, message_model="BROADCASTING"):
        message = admin.view_message(producer.send(Message(topic, b"x")).offset_msg_id)
        until(lambda: f"%RETRY%{group}" in admin.topics.all())
        assert admin.groups.of_topic(topic) == [group]
        printed = printed_track(each_cluster, mqadmin, message)
        if version_of(each_cluster) == "5.3.3":  # it lists the topic's name in place of a group without offsets
            assert f"consumerGroup={topic}, trackType=UNKNOWN" in printed, printed
            assert [track.group for track in admin.messages.track(message)] == [topic]
            (track,) = admin.messages.track(message, group)  # mqadmin names the topic in place of the group
            assert track.track_type is TrackType.CONSUME_BROADCASTING
        else:
            track = track_of(admin, message, group)
            is_5 = version_of(each_cluster).startswith("5")
            assert track.track_type is (TrackType.CONSUME_BROADCASTING if is_5 else TrackType.NOT_ONLINE)
            assert f"consumerGroup={group}, trackType={track.track_type}" in printed, printed


def test_what_an_expression_is_of_a_message_is_what_the_brokers_filter_says(
    each_cluster: Cluster, admin: Admin, producer: Producer
) -> None:
    topic, group = "real_sql", "real_sql_group"
    admin.create_topic(topic, queues=1)
    until(lambda: producer.fetch_publish_message_queues(topic))
    (queue,) = producer.fetch_publish_message_queues(topic)
    values: list[dict[str, str]] = [{"amount": "5"}, {"amount": "1"}, {}, {"amount": "3.5"}]
    messages = [
        admin.view_message(producer.send(Message(topic, b"x", properties=each), queue).offset_msg_id) for each in values
    ]
    wanted = SubscriptionData(topic=topic, sub_string="amount > 3", expression_type="SQL92", sub_version=1)
    with online(each_cluster.name_server, "S1", group, [wanted], [queue]):
        told = [admin.explain(message, group) for message in messages]
        admin.offsets.reset(group, queue, len(messages), force=True)
        until(lambda: admin.explain(queue, group).sentence.startswith(f"offset {len(messages)} of"))
        after = [admin.explain(message, group).outcome for message in messages]
    if is_ours(each_cluster):
        assert told[0].sentence == "the group's offset is 0, and nobody was handed it"
    else:
        assert told[0].sentences[1] == "will be passed by the broker's filter SQL92 amount > 3 (amount is '5')"
    if is_ours(each_cluster):
        assert after == [Outcome.SKIPPED] * 4, "an administrator moved the offset, and our broker knows it"
        return
    # a text that is no whole number is compared with one by no broker: the expression is not true then
    assert after == [Outcome.CONSUMED, Outcome.FILTERED, Outcome.FILTERED, Outcome.FILTERED]
