"""Combines brokers, their topics and the times at which they were last heard of. Finds the route of a topic.

Source: RocketMQ's `RouteInfoManager`, `QueueData`, `TopicSysFlag`, `DefaultRequestProcessor`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from rmqfast.logs import QuietLock, logger_of
from rmqfast.nameserver.broker_table import BrokerLiveInfo, BrokerTable, LiveTable
from rmqfast.nameserver.names import MAX_QUEUE_DATA, is_name
from rmqfast.nameserver.register_body import RegisterBody
from rmqfast.remoting import Channel
from rmqfast.remoting.hash_map import hash_order
from rmqfast.remoting.protocol.broker_data import MASTER_ID
from rmqfast.remoting.protocol.heartbeat_data import MAX_TOPIC_NAME
from rmqfast.remoting.protocol.queue_data import QueueData
from rmqfast.remoting.protocol.topic_route_data import TopicRouteData
from rmqfast.store.config import DataVersion, TopicConfig
from rmqfast.store.config.topics import PERM_READ, PERM_WRITE


def queue_data_of(broker_name: str, topic: TopicConfig) -> QueueData:
    return QueueData(broker_name, topic.read_queue_nums, topic.write_queue_nums, topic.perm, topic.topic_sys_flag)


class TopicQueueTable:
    def __init__(self) -> None:
        self._topics: dict[str, dict[str, QueueData]] = {}
        self._entries = 0

    def put(self, topic: str, queue_data: QueueData) -> bool:
        """Replaces a broker's queues of a topic. Returns whether there was room."""
        brokers = self._topics.get(topic, {})
        if queue_data.broker_name not in brokers:
            if self._entries >= MAX_QUEUE_DATA:
                return False
            self._entries += 1
        brokers[queue_data.broker_name] = queue_data
        self._topics[topic] = brokers
        return True

    def get(self, topic: str) -> list[QueueData] | None:
        """Returns the queues of a topic, sorted by broker name. `None` for an unknown topic."""
        brokers = self._topics.get(topic)
        return None if brokers is None else [brokers[name] for name in sorted(brokers)]

    def remove(self, topic: str) -> None:
        self._entries -= len(self._topics.pop(topic, ()))

    def remove_brokers(self, topic: str, broker_names: Iterable[str]) -> None:
        """Removes the queues of some brokers from a topic. Removes the topic if it has no broker left."""
        brokers = self._topics.get(topic, {})
        for name in broker_names:
            self._entries -= brokers.pop(name, None) is not None
        if not brokers:
            self._topics.pop(topic, None)

    def remove_broker(self, broker_name: str) -> None:
        for topic in list(self._topics):
            self.remove_brokers(topic, [broker_name])

    def wipe_write_perm(self, broker_name: str) -> int:
        """Forbids sends to all topics of a broker. Returns the number of topics."""
        # Holds until the broker registers a new data version, with its own permissions.
        return self._set_perm(broker_name, lambda perm: perm & ~PERM_WRITE)

    def add_write_perm(self, broker_name: str) -> int:
        """Allows reads and sends for all topics of a broker. Returns the number of topics."""
        # Exactly 6, as in 4.9.4, regardless of the previous permission.
        return self._set_perm(broker_name, lambda _: PERM_READ | PERM_WRITE)

    def names(self) -> list[str]:
        return sorted(self._topics)

    def names_of(self, broker_names: Iterable[str]) -> list[str]:
        """Returns the topics of some brokers, sorted."""
        wanted = set(broker_names)
        return sorted(topic for topic, brokers in self._topics.items() if not wanted.isdisjoint(brokers))

    def names_by_first(self, predicate: Callable[[QueueData], bool]) -> list[str]:
        """Returns the topics whose first broker the predicate accepts, sorted."""
        # RocketMQ looks at the first broker of a HashMap.
        first = {topic: brokers[hash_order(brokers)[0]] for topic, brokers in self._topics.items()}
        return sorted(topic for topic, queues in first.items() if predicate(queues))

    def __len__(self) -> int:
        return len(self._topics)

    def _set_perm(self, broker_name: str, new_perm: Callable[[int], int]) -> int:
        topics = [brokers for brokers in self._topics.values() if broker_name in brokers]
        for brokers in topics:
            brokers[broker_name] = replace(brokers[broker_name], perm=new_perm(brokers[broker_name].perm))
        return len(topics)


_LOG = logger_of("rmqfast.nameserver")


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    """Name, id and addresses of a broker. A master has id 0 and shares its `broker_name` with its slaves.

    `ha_server_address` is the address for its slaves.
    """

    cluster: str
    broker_name: str
    broker_id: int
    address: str
    ha_server_address: str | None = None


@dataclass(frozen=True, slots=True)
class Master:
    """The addresses of a slave's master."""

    address: str
    ha_server_address: str | None


class RouteInfoManager:
    """Brokers, their topics and the times at which they were last heard of. Thread-safe."""

    def __init__(self) -> None:
        self._lock = QuietLock()
        self._brokers = BrokerTable()
        self._topics = TopicQueueTable()
        self._live = LiveTable()
        self._filter_servers: dict[str, tuple[str, ...]] = {}

    def register(self, broker: BrokerIdentity, body: RegisterBody, channel: Channel, now: int) -> Master | None:
        """Registers a broker and, from a master, its changed topics. Returns the master of a slave, if it is known."""
        with self._lock:
            self._live.check_room(broker.address)
            is_new = self._brokers.put(broker.cluster, broker.broker_name, broker.broker_id, broker.address)
            is_changed = is_new or self._live.is_changed(broker.address, body.data_version)
            # As in 4.9.4, topics that the body omits stay registered.
            if broker.broker_id == MASTER_ID and is_changed:
                self._put_topics(broker.broker_name, body)
            info = BrokerLiveInfo(now, body.data_version, channel, broker.ha_server_address)
            self._live.put(broker.address, info)
            self._put_filter_servers(broker.address, body.filter_servers)
            return None if broker.broker_id == MASTER_ID else self._master_of(broker.broker_name)

    def unregister(self, broker: BrokerIdentity) -> None:
        with self._lock:
            self._live.remove(broker.address)
            self._filter_servers.pop(broker.address, None)
            if self._brokers.remove(broker.broker_name, broker.broker_id):
                self._topics.remove_broker(broker.broker_name)

    def channel_closed(self, channel: Channel) -> list[str]:
        """Removes the brokers of a connection that was closed. Returns their addresses."""
        with self._lock:
            addresses = self._live.on_channel(channel)
            for address in addresses:
                self._forget(address)
        return addresses

    def scan(self, now: int) -> list[Channel]:
        """Removes brokers that were silent for over 120 seconds. Returns their connections, which can be closed."""
        with self._lock:
            silent = self._live.find_expired(now)
            for address, _ in silent:
                _LOG.warning("broker %s was silent for too long", address)
                self._forget(address)
            # A connection that another live broker uses stays open.
            return [info.channel for _, info in silent if not self._live.on_channel(info.channel)]

    def query_data_version(self, address: str, version: DataVersion, now: int) -> tuple[bool, DataVersion | None]:
        """Returns whether a broker's topics changed, and the registered version. If unchanged, notes a sign of life."""
        with self._lock:
            is_changed = self._live.is_changed(address, version)
            if not is_changed:
                self._live.touch(address, now)
            info = self._live.get(address)
            return is_changed, None if info is None else info.data_version

    def pickup(self, topic: str) -> TopicRouteData | None:
        """Returns the route of a topic. `None` if no broker has the topic."""
        with self._lock:
            queues = self._topics.get(topic)
            entries = [self._brokers.get(queue.broker_name) for queue in queues or ()]
            brokers = [broker for broker in entries if broker is not None]
            if queues is None or not brokers:
                return None
            addresses = [address for broker in brokers for address in broker.addresses.values()]
            filters = {a: self._filter_servers[a] for a in addresses if a in self._filter_servers}
            # Copies, since the caller encodes the route without the lock.
            return TopicRouteData(queues, [replace(b, addresses=dict(b.addresses)) for b in brokers], filters)

    def cluster_info(self) -> dict[str, Any]:
        with self._lock:
            return self._brokers.to_json()

    def heard_brokers(self) -> dict[BrokerIdentity, int]:
        """Returns for each master and slave when it was last heard of, in milliseconds since 1970."""
        with self._lock:
            known = [
                BrokerIdentity(broker.cluster, broker.broker_name, broker_id, address)
                for broker in self._brokers
                for broker_id, address in broker.addresses.items()
            ]
            live = {broker: self._live.get(broker.address) for broker in known}
        return {broker: info.last_update for broker, info in live.items() if info is not None}

    def all_topics(self) -> list[str]:
        with self._lock:
            return self._topics.names()

    def topics_of_cluster(self, cluster: str) -> list[str]:
        with self._lock:
            return self._topics.names_of(self._brokers.names_of(cluster))

    def system_topics(self) -> tuple[list[str], str | None]:
        """Returns the names of clusters and brokers, since each is a topic as well, and the address of one broker."""
        with self._lock:
            clusters = self._brokers.clusters()
            names = {name for cluster in clusters for name in (cluster, *self._brokers.names_of(cluster))}
            first = next(iter(self._brokers), None)
            address = None if first is None else first.addresses[min(first.addresses)]
            return sorted(names), address

    def unit_topics(self, *, unit: bool | None, subscribed: bool | None) -> list[str]:
        """Returns the topics that have the given flags at their first broker. `None` accepts any value of a flag."""

        def has_flags(first: QueueData) -> bool:
            return unit in {None, first.is_unit} and subscribed in {None, first.has_unit_sub}

        with self._lock:
            return self._topics.names_by_first(has_flags)

    def wipe_write_perm(self, broker_name: str) -> int:
        """Forbids sends to a broker. Returns how many topics it has."""
        with self._lock:
            return self._topics.wipe_write_perm(broker_name)

    def add_write_perm(self, broker_name: str) -> int:
        """Allows sends to a broker again. Returns how many topics it has."""
        with self._lock:
            return self._topics.add_write_perm(broker_name)

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Removes a topic from one cluster or from all. A broker that still has the topic registers it again."""
        with self._lock:
            if cluster:
                self._topics.remove_brokers(topic, self._brokers.names_of(cluster))
            else:
                self._topics.remove(topic)

    def _put_topics(self, broker_name: str, body: RegisterBody) -> None:
        for topic in body.topics:
            if not is_name(topic.topic_name, most=MAX_TOPIC_NAME):
                _LOG.warning("broker %s has a topic whose name is none: %.60r", broker_name, topic.topic_name)
            # Stop, since the rest of the body would not fit, either.
            elif not self._topics.put(topic.topic_name, queue_data_of(broker_name, topic)):
                _LOG.warning("no room for topic %s of broker %s", topic.topic_name, broker_name)
                return

    def _put_filter_servers(self, address: str, filter_servers: tuple[str, ...] | None) -> None:
        if filter_servers:
            self._filter_servers[address] = filter_servers
        # None comes from a very old client, which does not mention filter servers: keep them.
        elif filter_servers is not None:
            self._filter_servers.pop(address, None)

    def _master_of(self, broker_name: str) -> Master | None:
        broker = self._brokers.get(broker_name)
        address = None if broker is None else broker.addresses.get(MASTER_ID)
        info = None if address is None else self._live.get(address)
        return None if address is None or info is None else Master(address, info.ha_server_address)

    def _forget(self, address: str) -> None:
        self._live.remove(address)
        self._filter_servers.pop(address, None)
        for broker_name, broker_id in self._brokers.ids_of(address):
            if self._brokers.remove(broker_name, broker_id):
                self._topics.remove_broker(broker_name)
