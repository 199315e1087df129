"""The route of a topic: its queues, brokers and addresses.

Source: `TopicRouteData`, `DefaultRequestProcessor.getRouteInfoByTopic`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rmqfast.remoting import fastjson
from rmqfast.remoting.protocol.broker_data import BrokerData
from rmqfast.remoting.protocol.queue_data import QueueData


@dataclass(frozen=True, slots=True)
class TopicRouteData:
    """The route of a topic: its queues, brokers and addresses."""

    queue_datas: Sequence[QueueData]
    broker_datas: Sequence[BrokerData]
    filter_servers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    order_topic_conf: str | None = None

    def encode(self, *, standard: bool = False) -> bytes:
        members = {
            "brokerDatas": [broker.to_json() for broker in self.broker_datas],
            "filterServerTable": self.filter_servers,
            "orderTopicConf": self.order_topic_conf,
            "queueDatas": [queues.to_json() for queues in self.queue_datas],
        }
        return fastjson.encode(members, standard=standard)
