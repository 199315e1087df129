"""An online consumer group: its clients, and the subscriptions that they share.

Source: RocketMQ's `ConsumerGroupInfo`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from rmqfast.broker.clients.client_channel import ClientChannel
from rmqfast.logs import logger_of
from rmqfast.remoting import Channel
from rmqfast.remoting.log_limit import limited
from rmqfast.remoting.protocol.heartbeat_data import ConsumerData
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

_log = limited(logger_of("rmqfast.broker"))


@dataclass(slots=True)
class ConsumerGroup:
    """The state of a group, as heartbeats change it; not thread-safe.

    Attributes:
        consume_type: As in the last heartbeat, as are the next two.
        message_model: `CLUSTERING` or `BROADCASTING`.
        consume_from_where: Where a new group begins.
        clients: Its clients by connection, in the order in which they came.
        subscriptions: What the group wants, by topic.
    """

    name: str
    consume_type: str | None = None
    message_model: str | None = None
    consume_from_where: str | None = None
    clients: dict[Channel, ClientChannel] = field(default_factory=dict)
    subscriptions: dict[str, SubscriptionData] = field(default_factory=dict)

    def update_client(self, client: ClientChannel, data: ConsumerData) -> bool:
        """Takes a client's heartbeat. Returns whether its connection is new.

        Type and model become those of this client, whatever the others of the group said.
        """
        # 4.9.4 overwrites them with each heartbeat, though members of a group should agree
        self.consume_type, self.message_model = data.consume_type, data.message_model
        self.consume_from_where = data.consume_from_where
        old = self.clients.get(client.channel)
        if old is None:
            self.clients[client.channel] = client
            return True
        if old.client_id == client.client_id:
            # language and version stay those of the first heartbeat, as in Java
            self.clients[client.channel] = replace(old, last_update=client.last_update)
        else:
            _log.error(
                "[BUG] group %s: client %s is %s on the same channel", self.name, old.client_id, client.client_id
            )
            self.clients[client.channel] = client
        return False

    def update_subscriptions(self, subscriptions: Iterable[SubscriptionData]) -> SubscriptionChange:
        """Takes the subscriptions of a client's heartbeat as those of the whole group.

        One with a greater version takes the place of the group's; topics that this client does not want are removed,
        though another one may want them.
        """
        updated: dict[str, SubscriptionData] = {}
        is_new = False
        topics = set()
        for subscription in subscriptions:
            topics.add(subscription.topic)
            old = self.subscriptions.get(subscription.topic)
            # The newest member decides for the group, and others are not notified of other tags: the trap of two
            # consumers of one group that want different tags.
            if old is None or subscription.sub_version > old.sub_version:
                self.subscriptions[subscription.topic] = updated[subscription.topic] = subscription
                is_new |= old is None
        removed = [topic for topic in self.subscriptions if topic not in topics]
        for topic in removed:
            del self.subscriptions[topic]
        return SubscriptionChange(tuple(updated.values()), tuple(removed), has_other_topics=is_new or bool(removed))

    def copy(self) -> ConsumerGroup:
        return replace(self, clients=dict(self.clients), subscriptions=dict(self.subscriptions))


@dataclass(frozen=True, slots=True)
class SubscriptionChange:
    """The change of a group's subscriptions by a heartbeat.

    Attributes:
        updated: Those that are new or newer.
        removed: Topics that are not wanted any more.
        has_other_topics: Whether topics came or went, of which clients are notified, unlike other tags.
    """

    updated: tuple[SubscriptionData, ...]
    removed: tuple[str, ...]
    has_other_topics: bool
