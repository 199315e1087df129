"""Keeps the online consumer groups, and passes their changes on to the data plane.

Source: RocketMQ's `ConsumerManager`, `DefaultConsumerIdsChangeListener`, `ConsumerGroupInfo`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from rmqfast._native import DataPlane
from rmqfast.broker.clients.client_channel import ClientChannel, GroupChange, check_room
from rmqfast.broker.clients.consumer_filter_manager import ConsumerFilterManager
from rmqfast.broker.ledger.ledger import PullLedger
from rmqfast.logs import QuietLock, logger_of
from rmqfast.remoting import Channel
from rmqfast.remoting.protocol.heartbeat_data import ConsumerData
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from rmqfast.remoting.rate_limit import limited

_log = limited(logger_of("rmqfast.broker"))


@dataclass(slots=True)
class ConsumerGroup:
    """An online group, as heartbeats have changed it. Not thread-safe.

    Attributes:
        consume_type: Taken from the last heartbeat, like `message_model` and `consume_from_where`.
        clients: Clients by connection, in order of arrival.
        own_subscriptions: Subscriptions in the last heartbeat of each client, by connection.
        subscriptions: Subscriptions of the whole group, by topic.
    """

    name: str
    consume_type: str | None = None
    message_model: str | None = None
    consume_from_where: str | None = None
    clients: dict[Channel, ClientChannel] = field(default_factory=dict)
    own_subscriptions: dict[Channel, tuple[SubscriptionData, ...]] = field(default_factory=dict)
    subscriptions: dict[str, SubscriptionData] = field(default_factory=dict)

    def update_client(self, client: ClientChannel, data: ConsumerData) -> bool:
        """Applies a client's heartbeat. Returns whether its connection is new.

        Type and model of the group become those of this client.
        """
        # As in 4.9.4, each heartbeat overwrites them; members of a group are expected to agree.
        self.consume_type, self.message_model = data.consume_type, data.message_model
        self.consume_from_where = data.consume_from_where
        self.own_subscriptions[client.channel] = data.subscriptions
        old = self.clients.get(client.channel)
        if old is None:
            self.clients[client.channel] = client
            return True
        if old.client_id == client.client_id:
            # Language and version stay those of the first heartbeat, as in Java.
            self.clients[client.channel] = replace(old, last_update=client.last_update)
        else:
            _log.error(
                "[BUG] group %s: client %s is %s on the same channel", self.name, old.client_id, client.client_id
            )
            self.clients[client.channel] = client
        return False

    def update_subscriptions(self, subscriptions: Iterable[SubscriptionData]) -> SubscriptionChange:
        """Applies the subscriptions in one client's heartbeat to the whole group. Returns the change.

        A subscription with a higher version replaces the group's. Topics that this client does not subscribe to are
        removed, even if another member subscribes to them.
        """
        updated: dict[str, SubscriptionData] = {}
        is_new = False
        topics = set()
        for subscription in subscriptions:
            topics.add(subscription.topic)
            old = self.subscriptions.get(subscription.topic)
            # The newest member decides for the group, and other members are not notified of changed tags. This is the
            # trap of two consumers of one group with different tags.
            if old is None or subscription.sub_version > old.sub_version:
                self.subscriptions[subscription.topic] = updated[subscription.topic] = subscription
                is_new |= old is None
        removed = [topic for topic in self.subscriptions if topic not in topics]
        for topic in removed:
            del self.subscriptions[topic]
        return SubscriptionChange(tuple(updated.values()), tuple(removed), has_other_topics=is_new or bool(removed))

    def remove_client(self, channel: Channel) -> ClientChannel | None:
        self.own_subscriptions.pop(channel, None)
        return self.clients.pop(channel, None)

    def copy(self) -> ConsumerGroup:
        own = dict(self.own_subscriptions)
        return replace(self, clients=dict(self.clients), own_subscriptions=own, subscriptions=dict(self.subscriptions))

    def to_json(self) -> dict[str, Any]:
        """Returns the group in the form in which administrators get it."""
        return {
            "connectionSet": [client.connection() for client in self.clients.values()],
            "consumeFromWhere": self.consume_from_where,
            "consumeType": self.consume_type,
            "messageModel": self.message_model,
            "subscriptionTable": {topic: each.to_json() for topic, each in self.subscriptions.items()},
        }


@dataclass(frozen=True, slots=True)
class SubscriptionChange:
    """The change of a group's subscriptions by a heartbeat.

    Attributes:
        updated: New subscriptions and those with a higher version.
        removed: Topics without a subscription now.
        has_other_topics: Whether topics were added or removed, which clients must be notified of.
    """

    updated: tuple[SubscriptionData, ...]
    removed: tuple[str, ...]
    has_other_topics: bool


class ConsumerManager:
    """The clients and subscriptions of online groups. The data plane gets every change.

    Returned notices must be sent by the caller.
    """

    def __init__(
        self,
        data_plane: DataPlane,
        filters: ConsumerFilterManager,
        *,
        ledger: PullLedger | None = None,
        is_notifying: Callable[[], bool] = lambda: True,
    ) -> None:
        self._data_plane = data_plane
        self._filters = filters
        self._ledger = ledger
        self._is_notifying = is_notifying
        self._lock = QuietLock()
        self._groups: dict[str, ConsumerGroup] = {}
        self._names_by_channel: dict[Channel, set[str]] = {}

    def check_room(self, channel: Channel, names: Iterable[str]) -> None:
        """Refuses a heartbeat with more groups than one connection may have."""
        with self._lock:
            check_room("consumer", self._names_by_channel.get(channel, set()).union(names))

    def register(
        self, client: ClientChannel, data: ConsumerData, *, is_notify_enabled: bool = True
    ) -> GroupChange | None:
        """Applies one group of a heartbeat. Returns a notice for the group if the client is new or topics changed."""
        with self._lock:
            group, is_new_group = self._open_group(data.group_name)
            old_model = group.message_model
            is_new = group.update_client(client, data)
            self._names_by_channel.setdefault(client.channel, set()).add(group.name)
            change = group.update_subscriptions(data.subscriptions)
            if is_new_group or group.message_model != old_model:
                self._data_plane.put_consumer_group(group.name, group.message_model)
            if self._ledger is not None:
                self._ledger.note_heartbeat(client.client_id, data)
            problems = self._push(group.name, change)
            self._filters.register(group.name, data.subscriptions, problems, now=client.last_update)
            # Notify the sender, too: the first assignment of a lite pull consumer depends on this notice.
            if (is_new or change.has_other_topics) and is_notify_enabled:
                return self._change(group)
        return None

    def unregister(
        self, group_name: str, channel: Channel, *, now: int, is_notify_enabled: bool = True
    ) -> GroupChange | None:
        """Removes a client from a group. Returns a notice for the others if the group was online and notices are on."""
        with self._lock:
            group = self._groups.get(group_name)
            if group is None:
                return None
            self._remove_client(group, channel)
            if not group.clients:
                self._end(group)
                self._filters.unregister(group_name, now=now)
            return self._change(group) if is_notify_enabled else None

    def disconnect(self, channel: Channel, *, now: int) -> list[GroupChange]:
        """Removes a client from all its groups. Returns notices for their other clients, even if notices are off."""
        changes = []
        with self._lock:
            for name in sorted(self._names_by_channel.get(channel, ())):
                group = self._groups[name]
                self._remove_client(group, channel)
                if not group.clients:
                    self._end(group)
                    self._filters.unregister(name, now=now)
                changes.append(self._change(group))
        return [change for change in changes if change is not None]

    def scan(self, now: int) -> list[Channel]:
        """Removes clients that were silent for more than 120 seconds. Returns their connections. Notifies no client."""
        channels = []
        with self._lock:
            for group in list(self._groups.values()):
                # No notice, as in 4.9.4: the others find out by their next rebalance, within 20 seconds.
                for client in [client for client in group.clients.values() if client.is_expired(now)]:
                    self._remove_client(group, client.channel)
                    channels.append(client.channel)
                if not group.clients:
                    self._end(group)
        return list(dict.fromkeys(channels))

    def group(self, name: str) -> ConsumerGroup | None:
        """Returns a copy of a group. None if the group is not online."""
        with self._lock:
            group = self._groups.get(name)
            return None if group is None else group.copy()

    def names(self) -> list[str]:
        with self._lock:
            return list(self._groups)

    def groups(self) -> list[ConsumerGroup]:
        """Returns copies of all online groups."""
        with self._lock:
            return [group.copy() for group in self._groups.values()]

    def client_ids(self, name: str) -> list[str]:
        with self._lock:
            group = self._groups.get(name)
            return [] if group is None else [client.client_id for client in group.clients.values()]

    def client(self, name: str, client_id: str) -> ClientChannel | None:
        with self._lock:
            group = self._groups.get(name)
            clients = () if group is None else group.clients.values()
            return next((client for client in clients if client.client_id == client_id), None)

    def subscription(self, name: str, topic: str) -> SubscriptionData | None:
        with self._lock:
            group = self._groups.get(name)
            return None if group is None else group.subscriptions.get(topic)

    def may_consume(self, name: str, topic: str) -> bool:
        """Whether a group subscribes to a topic, or is not online, so that nobody knows what it subscribes to."""
        with self._lock:
            group = self._groups.get(name)
            return group is None or not group.subscriptions or topic in group.subscriptions

    def groups_of_topic(self, topic: str) -> set[str]:
        with self._lock:
            return {group.name for group in self._groups.values() if topic in group.subscriptions}

    def _open_group(self, name: str) -> tuple[ConsumerGroup, bool]:
        group = self._groups.get(name)
        if group is not None:
            return group, False
        self._groups[name] = ConsumerGroup(name)
        return self._groups[name], True

    def _remove_client(self, group: ConsumerGroup, channel: Channel) -> None:
        client = group.remove_client(channel)
        if client is not None and self._ledger is not None:
            self._ledger.note_leave(group.name, client.client_id)
        names = self._names_by_channel.get(channel, set())
        names.discard(group.name)
        if not names:
            self._names_by_channel.pop(channel, None)

    def _end(self, group: ConsumerGroup) -> None:
        del self._groups[group.name]
        for topic in group.subscriptions:
            self._data_plane.remove_subscription(group.name, topic)
        self._data_plane.remove_consumer_group(group.name)

    def _push(self, name: str, change: SubscriptionChange) -> dict[str, str | None]:
        """Updates a group's subscriptions in the data plane. Returns the error of each changed expression, or None."""
        problems = {it.topic: self._data_plane.put_subscription(name, it) for it in change.updated}
        for topic in change.removed:
            self._data_plane.remove_subscription(name, topic)
        return problems

    def _change(self, group: ConsumerGroup) -> GroupChange | None:
        if not group.clients or not self._is_notifying():
            return None
        return GroupChange(group.name, tuple(group.clients))
