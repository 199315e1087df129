"""Asks brokers and name servers for the queues of a topic and their offsets.

Source: RocketMQ's `MQAdminImpl`.
"""

from __future__ import annotations

from collections.abc import Callable

from rmqfast.client.instance import ClientInstance
from rmqfast.errors import ClientError, RemotingError
from rmqfast.message import MessageQueue

_TIMEOUT = 6.0
_NOT_FOUND = "Can not find Message Queue for this topic, "
_NEXT_STEP = "create the topic, or see that its brokers are connected to this name server"


class QueueAdmin:
    """Asks masters and name servers about queues. Topics have their namespace, in arguments and in results."""

    def __init__(self, instance: ClientInstance) -> None:
        self._instance = instance

    def fetch_subscribe_message_queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Returns the readable queues of a topic from a name server. Does not change the route that the client uses."""
        try:
            queues = self._instance.api.readable_queues(topic, timeout=_TIMEOUT)
        except (ClientError, RemotingError) as error:
            code = error.response_code if isinstance(error, ClientError) else -1
            raise ClientError(f"{_NOT_FOUND}{topic}: {error}", response_code=code, next_step=_NEXT_STEP) from error
        if not queues:
            raise ClientError(f"{_NOT_FOUND}{topic} Namesrv return empty", next_step=_NEXT_STEP)
        return queues

    def max_offset(self, queue: MessageQueue) -> int:
        return self._ask_master(queue, lambda address: self._instance.api.max_offset(address, queue, timeout=_TIMEOUT))

    def min_offset(self, queue: MessageQueue) -> int:
        return self._ask_master(queue, lambda address: self._instance.api.min_offset(address, queue, timeout=_TIMEOUT))

    def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        """Returns the offset of the message stored nearest to a time. RocketMQ 5: of the first one since that time."""
        api = self._instance.api
        return self._ask_master(queue, lambda address: api.search_offset(address, queue, timestamp, timeout=_TIMEOUT))

    def earliest_store_time(self, queue: MessageQueue) -> int:
        """Returns the store time of a queue's first message, in milliseconds since 1970. -1 if the queue is empty."""
        api = self._instance.api
        return self._ask_master(queue, lambda address: api.earliest_store_time(address, queue, timeout=_TIMEOUT))

    def _ask_master(self, queue: MessageQueue, ask: Callable[[str], int]) -> int:
        address = self._instance.routes.publish_address(queue.broker_name)
        if address is None:
            self._instance.update_route(queue.topic)
            address = self._instance.routes.publish_address(queue.broker_name)
        if address is None:
            raise ClientError(
                f"The broker[{queue.broker_name}] not exist",
                next_step=f"no master of that name stands in the route of topic {queue.topic}: is it running?",
            )
        try:
            return ask(address)
        except RemotingError as error:
            raise ClientError(f"the broker {address} does not tell: {error}") from error
