"""Members of a group that subscribe differently are told so, whatever kind they are of."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from rmqfast import EmbeddedCluster
from rmqfast.client.lite_pull import LitePullConsumer
from rmqfast.client.producer import Producer
from rmqfast.client.push import PushConsumer

from .listening import SHORT, Seen, send, until


@pytest.mark.parametrize("kind", ["push", "lite pull"])
def test_a_member_that_subscribes_otherwise_than_the_one_before_warns_at_once(
    rmqfast_cluster: EmbeddedCluster, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    name_server = rmqfast_cluster.name_server
    with ExitStack() as stack:
        send(stack.enter_context(Producer("sends", name_server=name_server)), "t", [b"x"], queues=2)
        for name, expression in (("one", "A"), ("two", "B")):
            assert "messages get lost" not in caplog.text
            member: PushConsumer | LitePullConsumer
            if kind == "push":
                member = PushConsumer("g", name_server=name_server, instance_name=name, timings=SHORT)
                member.register_message_listener(Seen())
            else:
                member = LitePullConsumer("g", name_server=name_server, instance_name=name)
            member.subscribe("t", expression)
            stack.enter_context(member)
        until(lambda: "members of group g subscribe differently to t" in caplog.text, 10)
    assert "messages get lost" in caplog.text
