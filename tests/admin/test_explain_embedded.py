"""What is explained, against a broker in this process and members of which all is known."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from rmqfast import EmbeddedCluster, Message, MessageQueue
from rmqfast.admin import Admin, Outcome, TrackType
from rmqfast.client.consumer import MessageView
from rmqfast.client.producer import Producer
from rmqfast.errors import ArgumentError, ClientError, RemotingError
from rmqfast.remoting import RemotingClient, RequestCode
from tests.waiting import PATIENCE, until

from .members import online, wants

#: As brokers of RocketMQ, which keep no ledger: test_explain_ledger.py has what the ledger adds.
LEVELS = {"messageDelayLevel": "1s 1h 1s 1h 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1h", "pullLedgerEnable": "false"}


@pytest.fixture(scope="module")
def cluster(face: str) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(config=LEVELS) as running:
        yield running


def queue_of(topic: str, number: int) -> MessageQueue:
    return MessageQueue(topic, "broker-a", number)


def queues_of(topic: str, *numbers: int) -> list[MessageQueue]:
    return [queue_of(topic, number) for number in numbers]


def send_back(cluster: EmbeddedCluster, group: str, message: MessageView, level: int) -> None:
    """What a consumer does with a message that it could not process."""
    fields = {"group": group, "originTopic": message.topic, "offset": message.physical_offset, "delayLevel": level}
    with RemotingClient(cluster.brokers[0].address, timeout=PATIENCE) as client:
        client.ask(RequestCode.CONSUMER_SEND_MSG_BACK, {name: str(value) for name, value in fields.items()})


def passed(admin: Admin, group: str, topic: str, offset: int, *numbers: int) -> None:
    for queue in queues_of(topic, *numbers):
        admin.offsets.reset(group, queue, offset, force=True)


def test_the_eight_messages_of_two_members_with_different_tags(
    cluster: EmbeddedCluster, admin: Admin, producer: Producer
) -> None:
    """Article 004: C1 wants TagA, C2 wants TagB and comes last; each has two queues; eight messages of TagB."""
    topic, group, now = "article", "inconsistent", int(time.time() * 1000) - 60_000
    admin.create_topic(topic, queues=4)
    c1, c2 = wants(topic, "TagA", now), wants(topic, "TagB", now + 1)
    with ExitStack() as stack:
        one = stack.enter_context(online(cluster.name_server, "C1", group, [c1], queues_of(topic, 0, 1)))
        stack.enter_context(online(cluster.name_server, "C2", group, [c2], queues_of(topic, 2, 3)))
        sent = [
            producer.send(Message(topic, b"B%d" % n, tags="TagB"), queue)
            for n, queue in enumerate(queues_of(topic, 0, 1, 2, 3) * 2)
        ]
        messages = [admin.view_message(result.offset_msg_id) for result in sent]
        before = [admin.explain(message, group) for message in messages]
        passed(admin, group, topic, 2, 0, 1, 2, 3)
        after = [admin.explain(message, group) for message in messages]
        tracks = [admin.messages.track(message) for message in messages]
        (conflict,) = admin.groups.subscription_conflicts(group)

        assert {each.outcome for each in before} == {Outcome.NOT_CONSUMED_YET}
        assert before[0].sentence == f"the group's offset has not passed it: 0 of 2, 2 behind, owner {one}"
        assert before[0].sentences[1].startswith(f"will be dropped by {one}'s tag check: its tag TagB is not in")
        assert before[2].sentences == ("the group's offset has not passed it: 0 of 2, 2 behind, owner 10.0.0.1@C2",)
        lost = [message.body for message, each in zip(messages, after, strict=True) if each.outcome is Outcome.LOST]
        assert lost == [b"B0", b"B1", b"B4", b"B5"]
        assert [each.outcome for each in after].count(Outcome.CONSUMED) == 4
        assert after[0].sentence == (
            f"passed by the offset, delivered to {one}, dropped by {one}'s tag check: nobody processed it"
        )
        assert after[2].sentence.startswith("passed by the offset, delivered to 10.0.0.1@C2")
        assert {(track.group, track.track_type) for (track,) in tracks} == {(group, TrackType.CONSUMED)}
        assert conflict.expressions == {"10.0.0.1@C1": "TagA", "10.0.0.1@C2": "TagB"}


def test_messages_of_the_tag_that_the_broker_does_not_keep_are_filtered_and_lost(
    cluster: EmbeddedCluster, admin: Admin, producer: Producer
) -> None:
    topic, group, now = "kept", "other", int(time.time() * 1000) - 60_000
    admin.create_topic(topic, queues=2)
    with ExitStack() as stack:
        own = [wants(topic, "TagA", now)], [wants(topic, "TagB", now + 1)]
        stack.enter_context(online(cluster.name_server, "C1", group, own[0], queues_of(topic, 0)))
        stack.enter_context(online(cluster.name_server, "C2", group, own[1], queues_of(topic, 1)))
        sent = [producer.send(Message(topic, b"x", tags=tag), queue_of(topic, 1)) for tag in ("TagA", "TagC")]
        wanted, unwanted = [admin.view_message(each.offset_msg_id) for each in sent]
        told = admin.explain(wanted, group)
        assert told.sentences[1].startswith("will be filtered by the broker: its tag TagA is not in the group's")
        passed(admin, group, topic, 2, 1)
        told = admin.explain(wanted, group)
        assert told.outcome is Outcome.LOST
        assert told.sentence.startswith(
            "passed by the offset, filtered by the broker: its tag TagA is not in the group's subscription TagB "
            "(set by member 10.0.0.1@C2 at 20"
        )
        assert told.sentence.endswith("though 10.0.0.1@C1 subscribed to it: nobody processed it")
        assert admin.messages.track(wanted)[0].track_type is TrackType.CONSUMED_BUT_FILTERED
        assert admin.explain(unwanted, group).outcome is Outcome.FILTERED


def test_a_message_that_was_sent_back_is_in_retry_then_dead(
    cluster: EmbeddedCluster, admin: Admin, producer: Producer
) -> None:
    topic, group = "retried", "retrying"
    admin.create_topic(topic, queues=1)
    queue = queue_of(topic, 0)
    with online(cluster.name_server, "R1", group, [wants(topic, "*"), wants(f"%RETRY%{group}", "*")], [queue]):
        sent = producer.send(Message(topic, b"x"), queue)
        message = admin.view_message(sent.offset_msg_id)
        passed(admin, group, topic, 1, 0)

        send_back(cluster, group, message, 2)
        told = admin.explain(message, group)
        assert told.outcome is Outcome.IN_RETRY
        assert told.sentence.startswith("the first retry is due at 20")
        (copy,) = told.copies
        assert copy.due_timestamp is not None
        assert copy.due_timestamp - copy.store_timestamp == 3_600_000

        send_back(cluster, group, message, -1)
        told = admin.explain(message, group)
        assert told.outcome is Outcome.DEAD_LETTER
        assert told.sentence.startswith("consumed in vain 1 times, %DLQ%retrying offset 0 since 20")
        assert told.next_step == f"mend what fails, then: rmqfast group resend {group} --id {message.msg_id}"


def test_a_retry_that_is_due_waits_in_the_topic_of_retries_until_it_is_passed(
    cluster: EmbeddedCluster, admin: Admin, producer: Producer
) -> None:
    topic, group = "due", "doing"
    admin.create_topic(topic, queues=1)
    retry = f"%RETRY%{group}"
    with online(cluster.name_server, "D1", group, [wants(topic, "*"), wants(retry, "*")], queues_of(topic, 0)):
        message = admin.view_message(producer.send(Message(topic, b"x"), queue_of(topic, 0)).offset_msg_id)
        passed(admin, group, topic, 1, 0)
        send_back(cluster, group, message, 1)
        until(lambda: "waits in" in admin.explain(message, group).sentence)
        told = admin.explain(message, group)
        assert told.sentence == f"the first retry waits in {retry} queue 0 offset 0: the group is at 0"
        as_consumed = admin.messages.by_offset(MessageQueue(retry, "broker-a", 0), 0).seen_as(topic)
        assert (as_consumed.topic, as_consumed.reconsume_times) == (topic, 1)
        assert admin.explain(as_consumed, group).sentences == told.sentences
        passed(admin, group, retry, 1, 0)
        told = admin.explain(message, group)
        assert told.outcome is Outcome.CONSUMED
        assert told.sentence == f"the group has passed the first retry, {retry} queue 0 offset 0"


def test_what_is_not_known_is_said_where_nobody_is_online(
    cluster: EmbeddedCluster, admin: Admin, producer: Producer
) -> None:
    topic, group = "left", "gone"
    admin.create_topic(topic, queues=1)
    message = admin.view_message(producer.send(Message(topic, b"x"), queue_of(topic, 0)).offset_msg_id)
    with online(cluster.name_server, "G1", group, [wants(topic, "*")], queues_of(topic, 0)):
        passed(admin, group, topic, 1, 0)
        assert admin.explain(message, group).outcome is Outcome.CONSUMED
    told = admin.explain(message, group)
    assert told.outcome is Outcome.UNKNOWN
    assert told.sentence == (
        "the offset has passed it, and whether anybody processed it is not known: nobody of the group gone is online, "
        "and with it goes its subscription"
    )
    assert [(track.track_type, track.description) for track in admin.messages.track(message)] == [
        (TrackType.NOT_ONLINE, "CODE:206 DESC:the consumer group[gone] not online")
    ]


def test_the_queues_of_pull_consumers_are_worked_out(
    cluster: EmbeddedCluster, admin: Admin, producer: Producer
) -> None:
    topic, group = "pulled", "pulling"
    admin.create_topic(topic, queues=2)
    with ExitStack() as stack:
        for name in ("L1", "L2"):
            stack.enter_context(
                online(cluster.name_server, name, group, [wants(topic, "TagA")], consume_type="CONSUME_ACTIVELY")
            )
        message = admin.view_message(producer.send(Message(topic, b"x", "TagA"), queue_of(topic, 1)).offset_msg_id)
        told = admin.explain(message, group)
        assert told.sentence == "the group's offset has not passed it: 0 of 1, 1 behind, owner 10.0.0.1@L2"
        passed(admin, group, topic, 1, 1)
        told = admin.explain(message, group)
        assert told.outcome is Outcome.UNKNOWN
        assert "each member of pulling filters its own pulls" in told.sentence
        assert told.sentences[-1].startswith("10.0.0.1@L2 does not tell which queues it has")
        assert admin.messages.track(message)[0].track_type is TrackType.PULL


def test_a_broadcasting_group_is_told_to_have_offsets_of_its_own(
    cluster: EmbeddedCluster, admin: Admin, producer: Producer
) -> None:
    topic, group = "broad", "casting"
    admin.create_topic(topic, queues=1)
    with online(cluster.name_server, "B1", group, [wants(topic, "*")], message_model="BROADCASTING"):
        message = admin.view_message(producer.send(Message(topic, b"x"), queue_of(topic, 0)).offset_msg_id)
        assert admin.explain(message, group).outcome is Outcome.BROADCASTING
        (track,) = admin.messages.track(message)
        assert track.track_type is TrackType.NOT_ONLINE  # as 4.9.4: a broadcasting group has no offsets
        assert track.description is not None
        assert track.description.startswith("CODE:206 DESC:Not found the consumer group consume stats")


def test_queues_groups_and_all_groups_of_a_message_are_explained(
    cluster: EmbeddedCluster, admin: Admin, producer: Producer
) -> None:
    topic, now = "standing", int(time.time() * 1000) - 60_000
    admin.create_topic(topic, queues=2)
    with ExitStack() as stack:
        for name, tag, at in (("S1", "TagA", 0), ("S2", "TagB", 1)):
            own = [wants(topic, tag, now + at)]
            stack.enter_context(online(cluster.name_server, name, "standing_1", own, queues_of(topic, at)))
        stack.enter_context(
            online(cluster.name_server, "T1", "standing_2", [wants(topic, "*")], queues_of(topic, 0, 1))
        )
        message = admin.view_message(producer.send(Message(topic, b"x", "TagB"), queue_of(topic, 0)).offset_msg_id)
        passed(admin, "standing_1", topic, 1, 0)
        passed(admin, "standing_1", topic, 0, 1)

        both = admin.explain(message)
        assert both.sentence == f"2 groups consume the topic {topic}"
        assert [part.outcome for part in both.parts] == [Outcome.LOST, Outcome.NOT_CONSUMED_YET]
        lines = str(both).splitlines()
        assert lines[2:4] == [
            "  group standing_1",
            f"    LOST: {both.parts[0].sentence}",
        ]
        assert f"    next: {both.parts[0].next_step}" in lines
        assert both.has_problem

        told = admin.explain(queue_of(topic, 0), "standing_1")
        assert told.sentence == "offset 1 of 1, first 0, owner 10.0.0.1@S1: 0 behind"
        assert told.sentences[1].startswith("the broker filters by TagB, set by 10.0.0.1@S2 at 20")
        assert told.sentences[2:] == (
            "10.0.0.1@S1 wants TagA: it drops messages with TagB, which are lost",
            "10.0.0.1@S1 never gets messages with TagA: the broker filters them",
        )
        assert told.has_problem
        assert not admin.explain(queue_of(topic, 0), "standing_2").has_problem

        (conflict,) = admin.groups.subscription_conflicts("standing_1")
        wanted = "10.0.0.1@S1 wants TagA, 10.0.0.1@S2 wants TagB"
        assert str(conflict) == f"members of group standing_1 subscribe differently to {topic}: {wanted}"
        told = admin.explain("standing_1")
        assert told.sentences == (
            "2 members online (push, CLUSTERING): 10.0.0.1@S1, 10.0.0.1@S2",
            f"{conflict}: messages get lost",
            f"{topic}: 0 behind in 2 queues",
        )
        assert len(told.parts) == 2
        assert told.has_problem
        assert told.next_step == "give all members of the group standing_1 the same subscription, or each its own group"
    with pytest.raises(ArgumentError, match="expected a message"):
        admin.explain(7)


def test_a_queue_is_explained_by_its_own_broker() -> None:
    """Each broker has a subscription and members of its own for a group."""
    topic, group = "brokers", "spread"
    with (
        EmbeddedCluster(brokers=2, config=LEVELS) as cluster,
        Admin(name_server=cluster.name_server) as admin,
        ExitStack() as stack,
    ):
        admin.create_topic(topic, queues=1)
        producer = stack.enter_context(Producer("spread_tests", name_server=cluster.name_server))
        a, b = (MessageQueue(topic, name, 0) for name in ("broker-a", "broker-b"))
        stack.enter_context(online(cluster.name_server, "M1", group, [wants(topic, "TagA")], [a]))
        stack.enter_context(online(cluster.name_server, "M2", group, [wants(topic, "TagA")], [b]))
        for queue, offset in ((a, 1), (b, 0)):
            producer.send(Message(topic, b"x", "TagA"), queue)
            admin.offsets.reset(group, queue, offset, force=True)
        told = [admin.explain(admin.messages.by_offset(queue, 0), group) for queue in (a, b)]
        assert [each.outcome for each in told] == [Outcome.CONSUMED, Outcome.NOT_CONSUMED_YET]
        assert told[1].sentence == "the group's offset has not passed it: 0 of 1, 1 behind, owner 10.0.0.1@M2"
        whole = admin.explain(group)
        assert f"{topic}: 1 behind in 2 queues" in whole.sentences
        assert [part.queue.queue for part in whole.parts if part.queue is not None] == [a, b]
        cluster.brokers[1].stop()
        with pytest.raises((RemotingError, ClientError)):
            admin.explain(MessageQueue(topic, "broker-b", 0), group)
