"""Chooses whether a queue is pulled from the master or a slave.

Source: RocketMQ's `PullAPIWrapper`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rmqfast.client.instance import ClientErrorCode, FoundBroker
from rmqfast.errors import ClientError
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.broker_data import MASTER_ID
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

#: The first release whose brokers filter by SQL92: `V4_1_0_SNAPSHOT`.
VERSION_WITH_SQL92 = 232


class BrokerChoice:
    """Chooses the master, or the slave that the last answer has suggested."""

    def __init__(self, find: Callable[[str, int], FoundBroker | None], update_route: Callable[[str], object]) -> None:
        self._find = find
        self.update_route: Final = update_route
        self._suggested: dict[MessageQueue, int] = {}

    def suggest(self, queue: MessageQueue, broker_id: int) -> None:
        self._suggested[queue] = broker_id

    def current(self, queue: MessageQueue) -> FoundBroker | None:
        return self._find(queue.broker_name, self._suggested.get(queue, MASTER_ID))

    def broker_of(self, queue: MessageQueue, subscription: SubscriptionData) -> FoundBroker:
        """Returns the broker to ask. Updates the route if the broker's address is unknown."""
        broker = self.current(queue)
        if broker is None:
            self.update_route(queue.topic)
            broker = self.current(queue)
        if broker is None:
            raise ClientError(
                f"The broker[{queue.broker_name}] not exist",
                response_code=ClientErrorCode.BROKER_NOT_EXIST_EXCEPTION,
                next_step=f"no broker of that name stands in the route of topic {queue.topic}: is it running?",
            )
        if not subscription.is_tag_type and broker.version < VERSION_WITH_SQL92:
            raise ClientError(
                f"The broker[{queue.broker_name}, {broker.version}] does not upgrade to support for filter message by "
                f"{subscription.expression_type}",
                next_step="its version is that of its last answer to a heartbeat, 0 where there was none",
            )
        return broker
