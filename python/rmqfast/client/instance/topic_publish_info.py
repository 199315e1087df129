"""Derives the writable and the readable queues of a topic from its route.

Source: `TopicPublishInfo`, `MQClientInstance.topicRouteData2TopicPublishInfo`, `topicRouteData2TopicSubscribeInfo`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.broker_data import MASTER_ID
from rmqfast.remoting.protocol.topic_route_data import TopicRouteData

#: Queues of one topic that are looked at, of all its brokers.
MAX_QUEUES = 1_000_000


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
        found = (queues.write_queue_nums for queues in self.route.queue_datas if queues.broker_name == broker_name)
        return next(found, -1)


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

    Args:
        route: The default topic's.
        queue_nums: The number of queues that the producer asks for.

    Source: `MQClientInstance.updateTopicRouteInfoFromNameServer` with `isDefault`.
    """
    changed = []
    for queue_data in route.queue_datas:
        nums = min(queue_nums, queue_data.read_queue_nums)
        changed.append(replace(queue_data, read_queue_nums=nums, write_queue_nums=nums))
    return replace(route, queue_datas=tuple(changed))


def _ordered(topic: str, order_topic_conf: str) -> tuple[MessageQueue, ...]:
    """The queues that a text like `broker-a:4;broker-b:2` stands for."""
    queues: list[MessageQueue] = []
    for entry in order_topic_conf.split(";"):
        broker_name, _, nums = entry.partition(":")
        if nums.isdecimal() and int(nums) <= MAX_QUEUES:
            queues.extend(MessageQueue(topic, broker_name, queue_id) for queue_id in range(int(nums)))
    return tuple(queues)
