"""Where the queues of a topic are, asked of name servers by whoever needs no client instance.

Source: `MQClientInstance.updateTopicRouteInfoFromNameServer`, `findBrokerAddressInSubscribe`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rmqfast.client.instance import ClientApi, ClientConfig, ClientErrorCode, RouteTable
from rmqfast.client.instance.name_servers import NameServers
from rmqfast.client.instance.topic_publish_info import subscribe_queues_of
from rmqfast.errors import ClientError, RemotingError, ResponseError, UnknownTopicError
from rmqfast.message import MessageQueue
from rmqfast.remoting import Connections, ResponseCode


@dataclass(frozen=True, slots=True)
class TopicRoute:
    """Where a topic is.

    Attributes:
        queues: Those that may be read, in their order.
        addresses: Of each of its brokers the address at which it is read: its master's, or else a slave's.
    """

    queues: tuple[MessageQueue, ...]
    addresses: Mapping[str, str]


class TopicRoutes:
    """Asks name servers where topics are; threads may share it.

    Args:
        config: How to reach the cluster.

    Attributes:
        connections: What requests go out by.
        api: One method a request.

    Raises:
        ClientError: No name server is known.

    Example:
        >>> import rmqfast
        >>> with rmqfast.EmbeddedCluster() as cluster:
        ...     with TopicRoutes(ClientConfig(name_server=cluster.name_server)) as routes:
        ...         route = routes.of_topic("TBW102")
        >>> sorted(route.addresses), len(route.queues)
        (['broker-a'], 8)
    """

    def __init__(self, config: ClientConfig) -> None:
        self.connections = Connections(
            tls=config.tls, sign=config.signer(), connect_timeout=config.connect_timeout, callback_threads=1
        )
        servers = NameServers(config.name_servers, self.connections)
        self.api = ClientApi(self.connections, servers, timeout=config.request_timeout)
        self._translate = config.translated
        servers.check()

    def of_topic(self, topic: str) -> TopicRoute:
        """Where a topic is now.

        Args:
            topic: The topic.

        Raises:
            UnknownTopicError: The name servers do not know it.
            ClientError: No name server answers; or nobody may read the topic.
        """
        try:
            route = self.api.topic_route(topic)
        except ResponseError as error:
            if error.code == ResponseCode.TOPIC_NOT_EXIST:
                raise self._unknown(topic) from error
            raise
        except RemotingError as error:
            raise _unreachable(error) from error
        queues = subscribe_queues_of(topic, route)
        if not queues:
            raise ClientError(
                f"topic {topic} has no queue that may be read",
                response_code=ResponseCode.NO_PERMISSION,
                next_step="its permission (perm) must have the bit 4, and readQueueNums be more than 0",
            )
        table = RouteTable(self._translate)
        table.put(topic, route)
        found = {name: table.subscribe_address(name) for name in sorted({queue.broker_name for queue in queues})}
        return TopicRoute(queues, {name: broker.address for name, broker in found.items() if broker is not None})

    def close(self) -> None:
        """Closes the connections."""
        self.connections.close()

    def _unknown(self, topic: str) -> UnknownTopicError:
        try:
            names = self.api.all_topics()
        except (RemotingError, ClientError):
            names = ()
        near = difflib.get_close_matches(topic, [name for name in names if not name.startswith("%")], n=3)
        hint = f"did you mean {', '.join(near)}?" if near else "create it, or see that its brokers are registered there"
        return UnknownTopicError(f"unknown topic {topic!r} at the name server; {hint}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _unreachable(error: RemotingError) -> ClientError:
    return ClientError(
        f"no name server answers: {error}",
        response_code=ClientErrorCode.CONNECT_BROKER_EXCEPTION,
        next_step="see that one runs there, and that nameServer is its host:port as the driver and executors reach it",
    )
