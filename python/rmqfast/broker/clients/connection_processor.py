"""Answers which clients are online, by consumer group, by producer group, and all producers.

Source: RocketMQ's `ConsumerManageProcessor`, `AdminBrokerProcessor`.
"""

from __future__ import annotations

from rmqfast.broker.clients.consumer_manager import ConsumerManager
from rmqfast.broker.clients.producer_manager import ProducerManager
from rmqfast.errors import ResponseError
from rmqfast.remoting import Header, Processor, Request, RequestCode, Response, ResponseCode
from rmqfast.remoting.fastjson import encode


class ConnectionProcessor:
    """Answers which clients a group has."""

    def __init__(self, consumers: ConsumerManager, producers: ProducerManager) -> None:
        self._consumers = consumers
        self._producers = producers

    def processors(self) -> dict[int, Processor]:
        return {
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: self.consumer_list,
            RequestCode.GET_CONSUMER_CONNECTION_LIST: self.consumer_connections,
            RequestCode.GET_PRODUCER_CONNECTION_LIST: self.producer_connections,
            RequestCode.GET_ALL_PRODUCER_INFO: self.all_producers,
        }

    def consumer_list(self, request: Request) -> Response:
        """38: the client ids among which consumers share out the queues."""
        group = Header(request.ext_fields).text("consumerGroup")
        client_ids = self._consumers.client_ids(group)
        if not client_ids:
            # clients of Java take this error for "no rebalance now", and keep their queues
            return Response(ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {group}", ext_fields={})
        return Response(ext_fields={}, body=encode({"consumerIdList": client_ids}))

    def consumer_connections(self, request: Request) -> Response:
        name = Header(request.ext_fields).text("consumerGroup")
        group = self._consumers.group(name)
        if group is None:
            raise ResponseError(ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{name}] not online")
        body = {
            "connectionSet": [client.connection() for client in group.clients.values()],
            "consumeFromWhere": group.consume_from_where,
            "consumeType": group.consume_type,
            "messageModel": group.message_model,
            "subscriptionTable": {topic: subscription.to_json() for topic, subscription in group.subscriptions.items()},
        }
        return Response(body=encode(body))

    def producer_connections(self, request: Request) -> Response:
        group = Header(request.ext_fields).text("producerGroup")
        clients = self._producers.clients(group)
        if clients is None:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"the producer group[{group}] not exist")
        return Response(body=encode({"connectionSet": [client.connection() for client in clients]}))

    def all_producers(self, request: Request) -> Response:  # noqa: ARG002 - nothing is asked but by the code
        return Response(body=encode({"data": self._producers.table()}))
