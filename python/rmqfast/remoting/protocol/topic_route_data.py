"""The route of a topic: its queues, brokers and addresses.

Source: `TopicRouteData`, `MQClientInstance.topicRouteDataIsChange`, `DefaultRequestProcessor.getRouteInfoByTopic`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rmqfast.remoting import fastjson
from rmqfast.remoting.protocol.broker_data import BrokerData
from rmqfast.remoting.protocol.json_object import JsonObject
from rmqfast.remoting.protocol.queue_data import MAX_QUEUES, QueueData, check_in_all

#: Limit of brokers read for one topic.
MAX_BROKERS = 10_000
_MOST_DIGITS = 18


@dataclass(frozen=True, slots=True)
class TopicRouteData:
    """The route of a topic: its queues, brokers and addresses."""

    queue_datas: Sequence[QueueData]
    broker_datas: Sequence[BrokerData]
    filter_servers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    order_topic_conf: str | None = None

    @classmethod
    def of_body(cls, body: bytes) -> TopicRouteData:
        """Parses a route, without filter servers and unknown fields. Raises `ResponseError` if it is malformed."""
        members = JsonObject.of_body(body, most=64 << 20)
        queue_datas = tuple(map(QueueData.from_json, members.objects("queueDatas", most=MAX_BROKERS)))
        check_in_all("readQueueNums", sum(data.read_queue_nums for data in queue_datas))
        check_in_all("writeQueueNums", sum(data.write_queue_nums for data in queue_datas))
        order_topic_conf = members.optional_text("orderTopicConf")
        check_in_all("orderTopicConf", sum(nums for _, nums in ordered_queue_nums(order_topic_conf or "")))
        return cls(
            queue_datas=queue_datas,
            broker_datas=tuple(map(BrokerData.from_json, members.objects("brokerDatas", most=MAX_BROKERS))),
            order_topic_conf=order_topic_conf,
        )

    def says_as(self, other: TopicRouteData | None) -> bool:
        """Whether another route is equal, in any order of its queues and brokers."""
        return other is not None and _in_order(self) == _in_order(other)

    def encode(self, *, standard: bool = False) -> bytes:
        members = {
            "brokerDatas": [broker.to_json() for broker in self.broker_datas],
            "filterServerTable": self.filter_servers,
            "orderTopicConf": self.order_topic_conf,
            "queueDatas": [queues.to_json() for queues in self.queue_datas],
        }
        return fastjson.encode(members, standard=standard)


def ordered_queue_nums(order_topic_conf: str) -> list[tuple[str, int]]:
    """Parses the brokers of an ordered topic and their queues: "broker-a:4;broker-b:2". Skips malformed entries."""
    entries = (entry.partition(":") for entry in order_topic_conf.split(";"))
    # Check the length first, since Python refuses to parse numbers of thousands of digits.
    numbers = ((name, int(nums)) for name, _, nums in entries if nums.isdecimal() and len(nums) <= _MOST_DIGITS)
    return [(name, nums) for name, nums in numbers if nums <= MAX_QUEUES]


def _in_order(
    route: TopicRouteData,
) -> tuple[list[QueueData], list[BrokerData], Mapping[str, Sequence[str]], str | None]:
    queues = sorted(route.queue_datas, key=lambda queue_data: queue_data.broker_name)
    brokers = sorted(route.broker_datas, key=lambda broker: broker.broker_name)
    return queues, brokers, route.filter_servers, route.order_topic_conf or None
