"""Rules of a consumer group, one heartbeat after the other."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from rmqfast.broker.clients.consumer_manager import ConsumerGroup
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

from .client_doubles import Line, client, consumer, subscription

T1, T2 = subscription("t1", "A", 5), subscription("t2", "*", 5)


def test_the_same_channel_with_another_client_id_is_replaced_and_not_new() -> None:
    group, line = ConsumerGroup("g"), Line()
    assert group.update_client(client(line, "one"), consumer("g"))
    assert not group.update_client(client(line, "two", now=3), consumer("g"))
    assert [known.client_id for known in group.clients.values()] == ["two"]


def test_language_and_version_stay_those_of_the_first_heartbeat() -> None:
    group, line = ConsumerGroup("g"), Line()
    group.update_client(client(line, version=401), consumer("g"))
    group.update_client(client(line, version=20, now=1), consumer("g"))
    assert group.clients[line].version == 401


B6 = replace(T1, sub_string="B", sub_version=6)


@dataclass
class Step:
    """What a group had, what a heartbeat wants, what becomes of it."""

    had: list[SubscriptionData]
    wanted: list[SubscriptionData]
    has: list[SubscriptionData]
    put: list[SubscriptionData]
    removed: list[str]
    is_told: bool


@pytest.mark.parametrize(
    "step",
    [
        Step([], [T1], [T1], [T1], [], is_told=True),
        Step([T1], [T1], [T1], [], [], is_told=False),
        Step([T1], [B6], [B6], [B6], [], is_told=False),
        Step([T1], [replace(B6, sub_version=5)], [T1], [], [], is_told=False),
        Step([T1], [replace(B6, sub_version=4)], [T1], [], [], is_told=False),
        Step([T1], [T1, T2], [T1, T2], [T2], [], is_told=True),
        Step([T1, T2], [T2], [T2], [], ["t1"], is_told=True),
        Step([T1, T2], [], [], [], ["t1", "t2"], is_told=True),
        Step([T1], [T2], [T2], [T2], ["t1"], is_told=True),
        Step([], [T1, B6], [B6], [B6], [], is_told=True),
    ],
    ids=[
        "a new topic",
        "the same again",
        "newer tags, of which nobody is told",
        "other tags, equal version",
        "older tags",
        "one more topic",
        "a topic less",
        "no topic",
        "another topic",
        "a topic twice",
    ],
)
def test_subscriptions_follow_the_heartbeat(step: Step) -> None:
    group = ConsumerGroup("g")
    group.update_subscriptions(step.had)
    change = group.update_subscriptions(step.wanted)
    assert list(group.subscriptions.values()) == step.has
    assert list(change.updated) == step.put
    assert list(change.removed) == step.removed
    assert change.has_other_topics is step.is_told
