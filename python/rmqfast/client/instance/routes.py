"""The routes of topics: the addresses of brokers that they give, and the queues that may be written to or read.

Source: `MQClientInstance.topicRouteTable`, `brokerAddrTable`, `brokerVersionTable`, `findBrokerAddressIn*`,
`TopicPublishInfo`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.broker_data import MASTER_ID
from rmqfast.remoting.protocol.topic_route_data import TopicRouteData, ordered_queue_nums
from rmqfast.threads import new_lock


class FoundBroker(NamedTuple):
    """A broker that may be read from.

    Attributes:
        address: `host:port`.
        is_slave: Whether it is no master.
        version: The ordinal of its release, 0 until a heartbeat was answered.
    """

    address: str
    is_slave: bool
    version: int


class RouteTable:
    """The routes of topics and the addresses of brokers; each call is atomic.

    Args:
        translate: Maps an address of a route to the one that is reachable from here.
    """

    def __init__(self, translate: Callable[[str], str] = str) -> None:
        self._translate = translate
        self._lock = new_lock()
        self._routes: dict[str, TopicRouteData] = {}
        self._brokers: dict[str, dict[int, str]] = {}
        self._versions: dict[tuple[str, str], int] = {}

    def get(self, topic: str) -> TopicRouteData | None:
        """The latest route of a topic."""
        return self._routes.get(topic)

    def topics(self) -> tuple[str, ...]:
        """The topics with a route."""
        with self._lock:
            return tuple(self._routes)

    def put(self, topic: str, route: TopicRouteData) -> None:
        """Takes the route of a topic, with its brokers' addresses."""
        with self._lock:
            for broker in route.broker_datas:
                addresses = {broker_id: self._translate(address) for broker_id, address in broker.addresses.items()}
                self._brokers[broker.broker_name] = addresses
            self._routes[topic] = route

    def brokers(self) -> Mapping[str, Mapping[int, str]]:
        """The addresses of all brokers, by name and id."""
        with self._lock:
            return {name: dict(addresses) for name, addresses in self._brokers.items()}

    def publish_address(self, broker_name: str) -> str | None:
        """The address of a broker's master; `None` if unknown.

        Source: `MQClientInstance.findBrokerAddressInPublish`.
        """
        return self._brokers.get(broker_name, {}).get(MASTER_ID)

    def subscribe_address(
        self, broker_name: str, broker_id: int = MASTER_ID, *, only_this: bool = False
    ) -> FoundBroker | None:
        """The address that a consumer reads from.

        Args:
            broker_name: The broker.
            broker_id: 0 for its master, else a slave.
            only_this: Whether no other address of that name will do.

        Source: `MQClientInstance.findBrokerAddressInSubscribe`.
        """
        addresses = self._brokers.get(broker_name, {})
        address = addresses.get(broker_id)
        # Java's order: this id, the next one, any of that name
        if address is None and broker_id != MASTER_ID:
            broker_id, address = broker_id + 1, addresses.get(broker_id + 1)
        if address is None and addresses and not only_this:
            broker_id, address = next(iter(addresses.items()))
        if address is None:
            return None
        return FoundBroker(address, broker_id != MASTER_ID, self._versions.get((broker_name, address), 0))

    def any_address(self, topic: str, choose: Callable[[Sequence[str]], str] = random.choice) -> str | None:
        """The address of one of a topic's brokers: its master, or else any of its slaves.

        Source: `MQClientInstance.findBrokerAddrByTopic`, `TopicRouteData.BrokerData.selectBrokerAddr`.
        """
        route = self._routes.get(topic)
        if route is None or not route.broker_datas:
            return None
        name = choose([broker.broker_name for broker in route.broker_datas])
        addresses = self._brokers.get(name, {})
        if MASTER_ID in addresses or not addresses:
            return addresses.get(MASTER_ID)
        return choose(list(addresses.values()))

    def set_version(self, broker_name: str, address: str, version: int) -> None:
        """Notes the release of a broker, from its answer to a heartbeat."""
        with self._lock:
            self._versions[broker_name, address] = version

    def version(self, broker_name: str, address: str) -> int:
        """The ordinal of a broker's release; 0 where it is not known.

        Source: `MQClientInstance.findBrokerVersion`.
        """
        return self._versions.get((broker_name, address), 0)

    def clean_offline_brokers(self) -> list[str]:
        """Removes and returns the addresses that no route has any more.

        Source: `MQClientInstance.cleanOfflineBroker`.
        """
        with self._lock:
            routed = {
                self._translate(address)
                for route in self._routes.values()
                for broker in route.broker_datas
                for address in broker.addresses.values()
            }
            gone = [a for addresses in self._brokers.values() for a in addresses.values() if a not in routed]
            kept = {
                name: {broker_id: address for broker_id, address in addresses.items() if address in routed}
                for name, addresses in self._brokers.items()
            }
            self._brokers = {name: addresses for name, addresses in kept.items() if addresses}
            self._versions = {key: version for key, version in self._versions.items() if key[1] in routed}
            return gone


@dataclass(frozen=True, slots=True)
class TopicPublishInfo:
    """The queues that a producer may send to.

    Attributes:
        topic: The topic.
        queues: In the order in which they are walked.
        is_ordered: Whether the name server lists the queues of an ordered topic.
        route: The route of the topic.

    Source: `TopicPublishInfo`; the producer chooses the queue.
    """

    topic: str
    queues: tuple[MessageQueue, ...]
    is_ordered: bool
    route: TopicRouteData

    @property
    def is_ok(self) -> bool:
        """Whether there is a queue."""
        return bool(self.queues)

    def write_queue_nums(self, broker_name: str) -> int:
        """The number of writable queues of a broker; -1 if it has none.

        Source: `TopicPublishInfo.getQueueIdByBroker`.
        """
        nums = (queues.write_queue_nums for queues in self.route.queue_datas if queues.broker_name == broker_name)
        return next(nums, -1)


def publish_info_of(topic: str, route: TopicRouteData) -> TopicPublishInfo:
    """The writable queues of brokers that have a master, broker by broker.

    Example:
        >>> from rmqfast.remoting.protocol.broker_data import BrokerData
        >>> from rmqfast.remoting.protocol.queue_data import QueueData
        >>> route = TopicRouteData([QueueData("b", 8, 2, 6, 0)], [BrokerData("c", "b", {0: "10.0.0.1:10911"})])
        >>> [queue.queue_id for queue in publish_info_of("t", route).queues]
        [0, 1]

    Source: `MQClientInstance.topicRouteData2TopicPublishInfo`.
    """
    if route.order_topic_conf:
        return TopicPublishInfo(topic, _ordered(topic, route.order_topic_conf), is_ordered=True, route=route)
    masters = {broker.broker_name for broker in route.broker_datas if MASTER_ID in broker.addresses}
    queues = tuple(
        MessageQueue(topic, queue_data.broker_name, queue_id)
        for queue_data in sorted(route.queue_datas, key=lambda each: each.broker_name)
        if queue_data.is_writable and queue_data.broker_name in masters
        for queue_id in range(queue_data.write_queue_nums)
    )
    return TopicPublishInfo(topic, queues, is_ordered=False, route=route)


def subscribe_queues_of(topic: str, route: TopicRouteData) -> tuple[MessageQueue, ...]:
    """All readable queues, sorted; brokers need no master.

    Source: `MQClientInstance.topicRouteData2TopicSubscribeInfo`.
    """
    queues = {
        MessageQueue(topic, queue_data.broker_name, queue_id)
        for queue_data in route.queue_datas
        if queue_data.is_readable
        for queue_id in range(queue_data.read_queue_nums)
    }
    return tuple(sorted(queues))


def clamped(route: TopicRouteData, queue_nums: int) -> TopicRouteData:
    """The route of a topic that does not exist yet, from that of the default topic `TBW102`.

    Source: `MQClientInstance.updateTopicRouteInfoFromNameServer` with `isDefault`.
    """
    changed = []
    for queue_data in route.queue_datas:
        nums = min(queue_nums, queue_data.read_queue_nums)
        changed.append(replace(queue_data, read_queue_nums=nums, write_queue_nums=nums))
    return replace(route, queue_datas=tuple(changed))


def _ordered(topic: str, order_topic_conf: str) -> tuple[MessageQueue, ...]:
    """The queues that a text like `broker-a:4;broker-b:2` stands for."""
    return tuple(
        MessageQueue(topic, broker_name, queue_id)
        for broker_name, nums in ordered_queue_nums(order_topic_conf)
        for queue_id in range(nums)
    )
