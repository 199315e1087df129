"""Consumers, producers and connections of which a test knows what they are told and what they answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rmqfast._native import NameServers, RouteTable
from rmqfast.client.instance.members import ConsumeType, MessageModel
from rmqfast.errors import RemotingConnectError
from rmqfast.message import MessageQueue
from rmqfast.remoting import Response
from rmqfast.remoting.protocol.broker_data import BrokerData
from rmqfast.remoting.protocol.queue_data import QueueData
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from rmqfast.remoting.protocol.topic_route_data import TopicRouteData


class FakeConsumer:
    """A consumer that notes what it is told."""

    def __init__(self, group: str, *topics: str, expression_type: str = "TAG") -> None:
        self.group = group
        self.consume_type: ConsumeType = "CONSUME_PASSIVELY"
        self.message_model: MessageModel = "CLUSTERING"
        self.consume_from_where = "CONSUME_FROM_LAST_OFFSET"
        self.is_unit_mode = False
        self.wanted = [
            SubscriptionData(topic=topic, sub_version=1, expression_type=expression_type, sub_string="*")
            for topic in topics
        ]
        self.queues: dict[str, Sequence[MessageQueue]] = {}
        self.rebalanced = self.persisted = 0
        self.reset: list[tuple[str, Mapping[MessageQueue, int]]] = []
        self.consumed: list[Any] = []
        self.on_rebalance: Callable[[], None] = lambda: None
        self.on_reset: Callable[[], None] = lambda: None

    def subscriptions(self) -> Sequence[SubscriptionData]:
        return self.wanted

    def do_rebalance(self) -> None:
        self.rebalanced += 1
        self.on_rebalance()

    def persist_consumer_offset(self) -> None:
        self.persisted += 1

    def update_topic_subscribe_info(self, topic: str, queues: Sequence[MessageQueue]) -> None:
        if any(subscription.topic == topic for subscription in self.wanted):
            self.queues[topic] = queues

    def is_subscribe_topic_need_update(self, topic: str) -> bool:
        return topic not in self.queues and any(subscription.topic == topic for subscription in self.wanted)

    def running_info(self) -> dict[str, Any]:
        return {
            "mqTable": {},
            "properties": {"PROP_CONSUMER_START_TIMESTAMP": "1"},
            "statusTable": {},
            "subscriptionSet": [subscription.to_json() for subscription in self.wanted],
        }

    def reset_offset(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        self.reset.append((topic, offsets))
        self.on_reset()

    def consume_message_directly(self, message: Any, broker_name: str | None) -> dict[str, Any]:
        self.consumed.append((message, broker_name))
        return {"autoCommit": True, "consumeResult": "CR_SUCCESS", "order": False, "spentTimeMills": 0}

    def consumer_status(self, topic: str) -> Mapping[MessageQueue, int]:
        return {MessageQueue(topic, "broker-a", 0): 9}


class FakeProducer:
    """A producer that notes what it is told."""

    def __init__(self, *topics: str) -> None:
        self.topics = topics
        self.checked: list[tuple[str, Any, Mapping[str, str]]] = []

    def publish_topics(self) -> Sequence[str]:
        return self.topics

    def check_transaction_state(self, address: str, message: Any, ext_fields: Mapping[str, str]) -> None:
        self.checked.append((address, message, ext_fields))


class FakeConnections:
    """Answers as told by address; whoever is not told of does not answer."""

    def __init__(self, answers: Mapping[str, Response] | None = None) -> None:
        self.answers = dict(answers or {})
        self.asked: list[str] = []

    def request(
        self,
        address: str,
        code: int,
        ext_fields: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        timeout: float = 3.0,
    ) -> Response:
        self.asked.append(address)
        answer = self.answers.get(address)
        if answer is None:
            raise RemotingConnectError(f"{address} does not answer")
        return answer


class FakeNameServer:
    """Connections to a name server with these routes, which notes the topics that it is asked for."""

    def __init__(self, **routes: TopicRouteData) -> None:
        self.routes = routes
        self.asked: list[str] = []
        self.error: Exception | None = None
        self.refusal = Response(17, "No topic route info in name server for the topic")

    def request(self, _address: str, _code: int, ext_fields: Mapping[str, str], *, timeout: float) -> Response:
        assert timeout == 3.0
        self.asked.append(ext_fields["topic"])
        if self.error is not None:
            raise self.error
        route = self.routes.get(ext_fields["topic"])
        return self.refusal if route is None else Response(body=route.encode())

    def table(self, translate: Callable[[str], str] | None = None) -> RouteTable:
        return RouteTable(NameServers(["n:9876"], self, print), 3.0, translate)


def route_of(*brokers: str, queues: int = 4, perm: int = 6, master: bool = True) -> TopicRouteData:
    """A route of brokers whose addresses are made of their names."""
    return TopicRouteData(
        tuple(QueueData(name, queues, queues, perm, 0) for name in brokers),
        tuple(BrokerData("c", name, {0 if master else 1: f"{name}:10911"}) for name in brokers),
    )
