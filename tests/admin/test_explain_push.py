"""Article 004 with push consumers of this package, against a broker in this process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from rmqfast import EmbeddedCluster, Message, MessageQueue
from rmqfast.admin import Admin, Outcome, TrackType
from rmqfast.client.instance import ClientConfig
from rmqfast.client.producer import Producer
from rmqfast.client.push import ConsumeConcurrentlyStatus, PushConsumer, PushOptions
from tests.waiting import until

from .members import is_newest_kept

TOPIC, GROUP = "article", "inconsistent"
QUEUES = [MessageQueue(TOPIC, "broker-a", number) for number in range(4)]


def consumer(cluster: EmbeddedCluster, name: str, tag: str, got: list[bytes]) -> PushConsumer:
    config = ClientConfig(
        name_server=cluster.name_server,
        instance_name=name,
        client_ip="10.0.0.1",
        rebalance_interval=0.3,
        heartbeat_interval=0.3,
        persist_offset_interval=0.2,
    )
    made = PushConsumer(GROUP, config=config, options=PushOptions(pull_suspend_millis=500))
    made.subscribe(TOPIC, tag)

    def take(messages: Sequence[Any], _context: object) -> ConsumeConcurrentlyStatus:
        got.extend(message.body for message in messages)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    made.register_message_listener(take)
    return made


@pytest.mark.long
@pytest.mark.soak
def test_who_lost_the_eight_messages_is_told_while_both_members_are_online() -> None:
    got: dict[str, list[bytes]] = {"TagA": [], "TagB": []}
    with EmbeddedCluster() as cluster, Admin(name_server=cluster.name_server) as admin, ExitStack() as stack:
        admin.create_topic(TOPIC, queues=4)
        producer = stack.enter_context(Producer("explained", name_server=cluster.name_server))
        for name, tag in (("C1", "TagA"), ("C2", "TagB")):
            stack.enter_context(consumer(cluster, name, tag, got[tag]))

        def owners() -> list[str | None]:
            told = [admin.explain(queue, GROUP) for queue in QUEUES]
            return [part.queue.owner for part in told if part.queue is not None]

        until(lambda: owners() == ["10.0.0.1@C1"] * 2 + ["10.0.0.1@C2"] * 2)
        until(lambda: is_newest_kept(admin, GROUP, TOPIC))
        kept = admin.consumer_connections(GROUP).subscriptions[TOPIC].sub_string
        bodies = [b"B%d" % number for number in range(8)]
        sent = [producer.send(Message(TOPIC, body, kept), QUEUES[n % 4]) for n, body in enumerate(bodies)]
        messages = [admin.view_message(result.offset_msg_id) for result in sent]
        until(lambda: admin.consume_stats(GROUP, TOPIC).diff_total == 0)
        told = [admin.explain(message, GROUP) for message in messages]

        other = "10.0.0.1@C1" if kept == "TagB" else "10.0.0.1@C2"
        lost = {m.body for m, each in zip(messages, told, strict=True) if each.outcome is Outcome.LOST}
        assert lost == ({b"B0", b"B1", b"B4", b"B5"} if kept == "TagB" else {b"B2", b"B3", b"B6", b"B7"})
        assert set(got[kept]) == set(bodies) - lost
        assert got["TagA" if kept == "TagB" else "TagB"] == []
        assert {each.outcome for each in told} == {Outcome.LOST, Outcome.CONSUMED}
        assert {each.sentence for each in told if each.outcome is Outcome.LOST} == {
            f"passed by the offset, delivered to {other}, dropped by {other}'s tag check: nobody processed it"
        }
        tracks = [track for message in messages for track in admin.message_track(message)]
        assert {track.track_type for track in tracks} == {TrackType.CONSUMED}
