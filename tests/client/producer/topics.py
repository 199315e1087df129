"""Topics for decisions that need no name server."""

from __future__ import annotations

from rmqfast.client.instance import TopicPublishInfo
from rmqfast.client.producer.publish_queues import PublishQueues, ThreadLocalIndex
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.queue_data import QueueData
from rmqfast.remoting.protocol.topic_route_data import TopicRouteData


def publish_queues(brokers: dict[str, int], *, start: int = -1) -> PublishQueues:
    """The queues of topic `t` by how many each broker has; the first one that is chosen is the one behind `start`."""
    queues = tuple(MessageQueue("t", name, number) for name, count in brokers.items() for number in range(count))
    route = TopicRouteData(tuple(QueueData(name, count, count, 6, 0) for name, count in brokers.items()), ())
    info = TopicPublishInfo("t", queues, is_ordered=False, route=route)
    return PublishQueues(info, index=ThreadLocalIndex(lambda: start))
