"""Looks up the queues of a topic and their offsets by time, for jobs that have no client instance.

Brokers of 4.9 give the message that is nearest to a time, any one of those of the same millisecond, and of a queue with
several files the wrong file where these were copied. So their answer is only where the search begins.

Source: `MQClientInstance.updateTopicRouteInfoFromNameServer`, `findBrokerAddressInSubscribe`,
`ConsumeQueue.getOffsetInQueueByTime`, `MappedFileQueue.getMappedFileByTime`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rmqfast._native import pull_fields, read_pull
from rmqfast.client.instance import ClientApi, ClientConfig, ClientErrorCode, RouteTable
from rmqfast.client.instance.name_servers import NameServers
from rmqfast.client.instance.topic_publish_info import subscribe_queues_of
from rmqfast.errors import ClientError, RemotingError, ResponseError, UnknownTopicError
from rmqfast.message import MessageQueue
from rmqfast.remoting import Connections, RequestCode, ResponseCode


@dataclass(frozen=True, slots=True)
class TopicRoute:
    """The readable queues of a topic.

    Attributes:
        queues: The queues, sorted.
        addresses: By broker name, the address to read from: the master's, or else a slave's.
    """

    queues: tuple[MessageQueue, ...]
    addresses: Mapping[str, str]


class TopicRoutes:
    """Looks up routes at the name servers; thread-safe.

    Args:
        config: How to reach the cluster.

    Attributes:
        connections: Send the requests.
        api: One method per request.

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
        """Looks up the route of a topic.

        Raises:
            UnknownTopicError: The name servers do not know it.
            ClientError: No name server answers, or the topic has no readable queue.
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


def first_offset_at(when: int, bounds: tuple[int, int], hint: int, store_time: Callable[[int], int | None]) -> int:
    """The first offset of a queue whose message was stored at a time or later; else the queue's end.

    Args:
        when: Milliseconds since 1970.
        bounds: The queue's first offset, and the one behind its last.
        hint: Where the search begins.
        store_time: Gets the store time of an offset's message; `None` if it has expired.

    Example:
        >>> times = [10, 20, 20, 20, 30]
        >>> [first_offset_at(when, (0, 5), 3, times.__getitem__) for when in (0, 20, 21, 31)]
        [0, 1, 4, 5]

    Source: as above.
    """
    low, high = bounds  # what is before `low` is older, what is from `high` on is not
    probe, step, turns = min(max(hint, low), max(high - 1, low)), 1, 0
    was_older = None
    while low < high:
        stored = store_time(probe)
        is_older = stored is None or stored < when
        low, high = (probe + 1, high) if is_older else (low, probe)
        turns += was_older is (not is_older)
        was_older = is_older
        probe = low + step - 1 if is_older else high - step  # from the hint on in steps that double
        step *= 2
        if turns or not low <= probe < high:  # then by halves
            turns, probe = 1, (low + high) // 2
    return low


def offset_at(
    routes: TopicRoutes, address: str, queue: MessageQueue, when: int, bounds: tuple[int, int], *, group: str
) -> int:
    """The first offset of a broker's queue whose message was stored at a time or later.

    Args:
        routes: Sends the requests.
        address: The broker.
        queue: The queue.
        when: Milliseconds since 1970.
        bounds: As in `first_offset_at`.
        group: The consumer group in the pulls.

    Raises:
        RemotingError: The broker refuses, or does not answer.

    Source: `MQAdminImpl.searchOffset`.
    """
    if bounds[0] >= bounds[1]:
        return bounds[1]
    try:
        hint = routes.api.search_offset(address, queue, when)
    except ResponseError:
        hint = bounds[0]
    return first_offset_at(when, bounds, hint, lambda offset: _store_time(routes, address, queue, offset, group))


def _store_time(routes: TopicRoutes, address: str, queue: MessageQueue, offset: int, group: str) -> int | None:
    fields = pull_fields(group, queue, offset, 1)
    answer = routes.connections.request(address, RequestCode.PULL_MESSAGE, fields, timeout=routes.api.timeout)
    fetched = read_pull(
        queue, offset, code=answer.code, remark=answer.remark, ext_fields=answer.ext_fields, body=answer.body
    )
    if fetched.status == "FAILED" and fetched.code >= 0:
        raise ResponseError(fetched.code, fetched.remark)
    return fetched.messages[0].store_timestamp if fetched.messages else None
