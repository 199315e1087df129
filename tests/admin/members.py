"""Members of groups of which a test knows what they want, which queues they have, and what they say of themselves."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rmqfast.admin import Admin
from rmqfast.admin.facts import tag_hash
from rmqfast.client.instance import ClientConfig, ClientInstance
from rmqfast.errors import ResponseError
from rmqfast.message import MessageQueue
from rmqfast.remoting import RemotingClient, RequestCode, ResponseCode
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from tests.client.instance.doubles import FakeConsumer


def wants(topic: str, expression: str, version: int = 1) -> SubscriptionData:
    """A subscription to tags."""
    tags = () if expression == "*" else tuple(tag.strip() for tag in expression.split("||"))
    codes = tuple(map(tag_hash, tags))
    return SubscriptionData(topic=topic, sub_string=expression, tags_set=tags, code_set=codes, sub_version=version)


class Member(FakeConsumer):
    """A member that says of itself what it is told to say."""

    def __init__(self, group: str, subscriptions: Sequence[SubscriptionData], queues: Sequence[MessageQueue]) -> None:
        super().__init__(group)
        self.wanted, self.held = list(subscriptions), list(queues)

    def running_info(self) -> dict[str, Any]:
        members = super().running_info()
        members["properties"]["PROP_CONSUME_TYPE"] = self.consume_type
        held = {"commitOffset": 0, "droped": False, "lastPullTimestamp": int(time.time() * 1000)}
        return members | {"mqTable": dict.fromkeys(self.held, held)}


@contextmanager
def online(
    name_server: str,
    name: str,
    group: str,
    subscriptions: Sequence[SubscriptionData],
    queues: Sequence[MessageQueue] = (),
    **more: Any,
) -> Iterator[str]:
    """A member while the block runs; gives its client id.

    Args:
        name_server: Where the cluster is.
        name: The instance name.
        group: Its group.
        subscriptions: What it wants.
        queues: Which queues it says that it has.
        more: What else it says, as `consume_type`.
    """
    config = ClientConfig(name_server=name_server, instance_name=name, client_ip="10.0.0.1")
    instance = ClientInstance.of(config, config.client_id())
    member = Member(group, subscriptions, queues)
    for attribute, value in more.items():
        setattr(member, attribute, value)
    instance.register_consumer(group, member)
    instance.start()
    try:
        for subscription in subscriptions:
            instance.update_route(subscription.topic)
        assert instance.send_heartbeats()
        yield instance.client_id
    finally:
        instance.unregister_consumer(group)
        instance.release()


@contextmanager
def registered(name_server: str, name: str, address: str, *, cluster: str = "C") -> Iterator[None]:
    """An address that the name server takes for a broker."""
    fields = {"brokerAddr": address, "brokerId": "0", "brokerName": name, "clusterName": cluster, "haServerAddr": ""}
    with RemotingClient(name_server) as client:
        assert client.request(RequestCode.REGISTER_BROKER, fields).code == 0
        yield


def is_newest_kept(admin: Admin, group: str, topic: str) -> bool:
    """Whether the broker has heard of the newest subscription of a group's members: a rebalance makes newer ones."""
    known = admin.groups.connections(group)
    newest = max(admin.groups.running_info(group, name).subscriptions[topic].sub_version for name in known.client_ids)
    return known.subscriptions[topic].sub_version == newest


def is_settled(admin: Admin, group: str, topic: str) -> bool:
    """Whether each queue has an owner, and the broker has the subscription of the rebalance that gave it."""
    if not online_members(admin, group):
        return False
    queues = [row.queue for row in admin.topics.status(topic)]
    facts = [admin.explain(queue, group).queue for queue in queues]
    return all(each is not None and each.owner for each in facts) and is_newest_kept(admin, group, topic)


def online_members(admin: Admin, group: str) -> list[str]:
    """The client ids of the members of a group that are online."""
    try:
        return admin.groups.connections(group).client_ids
    except ResponseError as error:
        if error.code in {ResponseCode.CONSUMER_NOT_ONLINE, ResponseCode.TOPIC_NOT_EXIST}:
            return []
        raise
