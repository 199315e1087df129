"""Messages that come again, later, to all, or to whom their properties suit."""

from __future__ import annotations

import time
from contextlib import ExitStack

from rmqfast import Message
from rmqfast.admin import Outcome
from rmqfast.client.consumer import MessageSelector
from rmqfast.client.instance import ClientConfig
from rmqfast.client.push import ConsumeConcurrentlyStatus, PushConsumer

from .scene import FIRST, JavaMember, Scene, Seen, until


def a_message_that_nobody_can_consume_comes_again_and_is_dead_at_last(scene: Scene) -> None:
    topic, group = "retries", "retrying"
    (queue,) = scene.topic(topic, 1)
    seen = Seen(lambda _: ConsumeConcurrentlyStatus.RECONSUME_LATER)
    with scene.push(group, topic, seen, max_reconsume_times=2):
        (sent,) = scene.send([queue], [b"poison"], keys="poisonous", tags="t", properties={"own": "1"})
        until(lambda: len(seen.messages) >= 3, "two tries more")
        message = scene.admin.view_message(sent.offset_msg_id)
        until(lambda: scene.admin.explain(message, group).outcome is Outcome.DEAD_LETTER, "it is dead")
        assert [message.reconsume_times for message in seen.messages] == [0, 1, 2]
        assert {(each.topic, each.body, each.msg_id, each.tags) for each in seen.messages} == {
            (topic, b"poison", sent.msg_id, "t")
        }
        waits = [after - before for before, after in zip(seen.times, seen.times[1:], strict=False)]
        assert min(waits) > 0.9, "a level of one second was waited for"
        until(lambda: scene.admin.messages.by_key(f"%DLQ%{group}", "poisonous"), "the dead letter is found by its key")
        (dead,) = scene.admin.messages.by_key(f"%DLQ%{group}", "poisonous")
        assert (dead.body, dead.property("own"), dead.property("RETRY_TOPIC")) == (b"poison", "1", topic)
    assert len(seen.messages) == 3


def a_delayed_message_comes_when_it_is_due(scene: Scene) -> None:
    topic, group = "delays", "delayed"
    (queue,) = scene.topic(topic, 1)
    seen = Seen()
    with scene.push(group, topic, seen):
        began = time.monotonic()
        scene.producer.send(Message(topic, b"in three seconds", delay_level=2), queue)
        scene.producer.send(Message(topic, b"now"), queue)
        until(lambda: len(seen.messages) == 2, "both came")
    assert seen.bodies == [b"now", b"in three seconds"]
    assert seen.times[1] - began > 2.9
    assert seen.messages[1].property("REAL_TOPIC") in {None, topic}


def each_member_of_a_broadcasting_group_gets_all_messages(scene: Scene) -> None:
    topic, group = "news", "readers"
    queues = scene.topic(topic)
    members = [Seen(), Seen()]
    with ExitStack() as stack:
        for number, seen in enumerate(members):
            config = ClientConfig(
                name_server=scene.name_server,
                instance_name=f"reader-{number}",
                local_offset_dir=scene.directory / "readers",
            )
            made = PushConsumer(group, config=config, message_model="BROADCASTING", consume_from_where=FIRST)
            made.subscribe(topic)
            made.register_message_listener(seen)
            stack.enter_context(made)
        extra = f"-Drocketmq.client.localOffsetStoreDir={scene.directory / 'readers'}"
        java = stack.enter_context(scene.java(group, topic, "--broadcast", "--instance", "reader-java", extra=extra))
        until(lambda: len(scene.admin.groups.connections(group).client_ids) == 3, "three members")
        sent = sorted((each.queue.queue_id, each.queue_offset) for each in scene.send(queues, [b"x"] * 40))
        everybody: list[Seen | JavaMember] = [*members, java]
        for member in everybody:
            member.wait(40)
            assert sorted(member.places) == sent


def an_expression_of_sql92_chooses_the_same_messages_for_rmqfast_and_for_java(scene: Scene) -> None:
    topic = "chosen"
    queues = scene.topic(topic)
    text = "(a > 5 AND b IN ('x', 'y')) OR c IS NOT NULL"
    wanted = set()
    for number in range(48):
        properties = {"a": str(number % 12), "b": "xyz"[number % 3]} | ({"c": "1"} if number % 16 == 3 else {})
        if number % 7 == 6:
            properties = {}
        sent = scene.producer.send(Message(topic, b"%d" % number, properties=properties), queues[number % 4])
        if properties and ((number % 12 > 5 and number % 3 < 2) or number % 16 == 3):
            wanted.add((sent.queue.queue_id, sent.queue_offset))
    seen = Seen()
    with (
        scene.push("choosing", topic, seen, MessageSelector.by_sql(text)),
        scene.java("choosing_too", topic, "--sql", text) as java,
    ):
        seen.wait(len(wanted))
        java.wait(len(wanted))
        until(lambda: scene.offsets("choosing", topic) == [12] * 4, "rmqfast passed the others")
    assert set(java.places) == set(seen.places)
    assert sorted(seen.places) == sorted(wanted)


PLAYS = (
    a_message_that_nobody_can_consume_comes_again_and_is_dead_at_last,
    a_delayed_message_comes_when_it_is_due,
    each_member_of_a_broadcasting_group_gets_all_messages,
    an_expression_of_sql92_chooses_the_same_messages_for_rmqfast_and_for_java,
)
