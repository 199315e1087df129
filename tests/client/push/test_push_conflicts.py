"""Members of a group that subscribe differently are told so, whatever kind they are of."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import cast

import pytest

from rmqfast import EmbeddedCluster
from rmqfast.client.lite_pull import LitePullConsumer
from rmqfast.client.producer import Producer
from rmqfast.client.push import PushConsumer
from tests.client.awaited import Face
from tests.waiting import until

from .listening import PATIENT, Seen, send


@pytest.mark.parametrize("kind", [PushConsumer, LitePullConsumer])
def test_a_member_that_subscribes_otherwise_than_the_one_before_warns(
    cluster: EmbeddedCluster,
    producer: Producer,
    kind: type[PushConsumer | LitePullConsumer],
    face: Face,
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic = f"conflicts-{kind.__name__}"
    send(producer, topic, [], queues=2)
    # who else is in the group is looked at after each heartbeat
    config = replace(PATIENT, name_server=cluster.name_server, heartbeat_interval=0.1)
    with ExitStack() as members:
        for name, expression in (("one", "A"), ("two", "B")):
            assert f"members of group g-{topic} " not in caplog.text
            member = face(kind)(f"g-{topic}", config=config, instance_name=name)
            if kind is PushConsumer:
                cast(PushConsumer, member).register_message_listener(Seen())
            member.subscribe(topic, expression)
            members.enter_context(member)
        until(lambda: f"members of group g-{topic} subscribe differently to {topic}" in caplog.text)
    assert "messages get lost" in caplog.text
