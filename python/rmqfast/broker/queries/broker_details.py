"""Tables that our brokers tell at once, for snapshots, and those of RocketMQ do not."""

from __future__ import annotations

from typing import Any

from rmqfast.broker.clients.consumer_manager import ConsumerGroup, ConsumerManager
from rmqfast.broker.clients.producer_manager import ProducerManager
from rmqfast.broker.statistics.broker_stats import BrokerStats
from rmqfast.broker.topics.topic_manager import TopicManager
from rmqfast.store import LiveStore

#: The statistics that a snapshot has; those of single queues would be many.
_STATS = (
    "TOPIC_PUT_NUMS",
    "TOPIC_PUT_SIZE",
    "GROUP_GET_NUMS",
    "GROUP_GET_SIZE",
    "SNDBCK_PUT_NUMS",
    "BROKER_PUT_NUMS",
    "BROKER_GET_NUMS",
)


class BrokerDetails:
    """Online clients, ends of topics, and statistics of the last minute."""

    def __init__(
        self,
        topics: TopicManager,
        live: LiveStore,
        *,
        consumers: ConsumerManager,
        producers: ProducerManager,
        stats: BrokerStats,
    ) -> None:
        self._topics = topics
        self._live = live
        self._consumers = consumers
        self._producers = producers
        self._stats = stats

    def to_json(self) -> dict[str, Any]:
        """Returns the tables as members of an answer."""
        return {
            "consumerTable": {group.name: _members(group) for group in self._consumers.groups()},
            "endTable": self._ends(),
            "producerTable": {group: len(clients) for group, clients in self._producers.table().items()},
            "statsTable": {
                name: {key: {"sum": minute.sum, "tps": minute.tps} for key, minute in table.items()}
                for name, table in self._stats.last_minute(_STATS).items()
            },
        }

    def _ends(self) -> dict[str, int]:
        """Returns for each topic the sum of its queues' ends: the number of messages that it ever got."""
        return {
            topic.topic_name: sum(
                self._live.queue_bounds(topic.topic_name, queue_id)[1] for queue_id in range(topic.write_queue_nums)
            )
            for topic in self._topics.topics()
        }


def _members(group: ConsumerGroup) -> dict[str, Any]:
    """Returns a group as request 203 does, and the subscriptions of each member."""
    own = [
        {"clientId": client.client_id, "subscriptions": [each.to_json() for each in group.own_subscriptions[channel]]}
        for channel, client in group.clients.items()
    ]
    return {**group.to_json(), "memberSubscriptions": own}
