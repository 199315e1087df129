"""Stores the queues and permissions of each topic, for each broker.

Source: RocketMQ's `RouteInfoManager`, `QueueData`, `TopicSysFlag`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from rmqfast.nameserver.names import MAX_QUEUE_DATA
from rmqfast.remoting.hash_map import hash_order
from rmqfast.remoting.protocol.queue_data import QueueData
from rmqfast.store.config import TopicConfig
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
        """Forbids sends to a broker's topics. Returns how many there are."""
        # Holds until the broker registers a new data version, with its own permissions.
        return self._set_perm(broker_name, lambda perm: perm & ~PERM_WRITE)

    def add_write_perm(self, broker_name: str) -> int:
        """Allows reads and sends for a broker's topics. Returns how many there are."""
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
