"""Who is connected: the members of a group, the producers of a topic.

Source: `DefaultMQAdminExtImpl.examineConsumerConnectionInfo`, `examineProducerConnectionInfo`.
"""

from __future__ import annotations

from rmqfast.admin.consume_stats import Progress
from rmqfast.errors import ClientError
from rmqfast.remoting import RequestCode
from rmqfast.remoting.protocol.consumer_connection import Connection, ConsumerConnection, connections_of

_NEXT_STEP = "see that it runs and uses this cluster: brokers know it from its first heartbeat on"


class ClientConnections(Progress):
    """What an administrator asks about clients."""

    def consumer_connections(self, group: str) -> ConsumerConnection:
        """The members of a group, as the first of the brokers knows them that have its topic of retries.

        Raises:
            ResponseError: 206, nobody is online; 17, the group has no topic of retries.
            ClientError: Nobody is online.

        Source: `DefaultMQAdminExtImpl.examineConsumerConnectionInfo`, which asks any of these brokers.
        """
        for broker in self._brokers_of_group(group)[:1]:
            found = self._members_at(broker.address, group)
            if found.connections:
                return found
        raise ClientError(f"no member of the group {group} is online", next_step=_NEXT_STEP)

    def producer_connections(self, group: str, topic: str) -> list[Connection]:
        """The producers of a group, as the first broker of a topic knows them.

        Raises:
            ResponseError: 1, it knows none; 17, nobody has the topic.
            ClientError: There are none.

        Source: `DefaultMQAdminExtImpl.examineProducerConnectionInfo`, which asks any of these brokers.
        """
        code, fields = RequestCode.GET_PRODUCER_CONNECTION_LIST, {"producerGroup": group}
        for broker in self._brokers_of(topic)[:1]:
            found = connections_of(self._ask(broker.address, code, fields).body)
            if found:
                return list(found)
        raise ClientError(f"no producer of the group {group} is online", next_step=_NEXT_STEP)

    def _members_at(self, address: str, group: str) -> ConsumerConnection:
        fields = {"consumerGroup": group}
        return ConsumerConnection.of_body(self._ask(address, RequestCode.GET_CONSUMER_CONNECTION_LIST, fields).body)
