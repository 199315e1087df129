"""What the driver asks the brokers of a topic: all of them at once, and each about all its queues in one request.

Source: `DefaultMQAdminExtImpl.examineTopicStats`, `MQAdminImpl`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

from rmqfast.admin.topics import topic_offsets_of_body
from rmqfast.client.instance import ClientConfig
from rmqfast.client.ranges import TopicRoute, TopicRoutes
from rmqfast.client.ranges.topic_routes import offset_at
from rmqfast.errors import ClientError, RemotingError, ResponseError
from rmqfast.message import MessageQueue
from rmqfast.remoting import RequestCode, ResponseCode
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from rmqfast.spark.live.offsets import Bounds

__all__ = ["TopicCluster"]

_log = logging.getLogger("rmqfast.spark")
_THREADS = 16
#: What a broker says that starts, ends, or has too much to do.
_BUSY = (ResponseCode.SYSTEM_BUSY, ResponseCode.SERVICE_NOT_AVAILABLE, ResponseCode.TOPIC_NOT_EXIST)
_CLIENT_ID = "rmqfast-spark"


class TopicCluster:
    """The brokers of a topic, as the driver sees them.

    Args:
        config: How to reach the cluster.
        topic: The topic.

    Raises:
        ClientError: No name server is known.

    Example:
        >>> cluster = getfixture("live_cluster")
        >>> with TopicCluster(ClientConfig(name_server=cluster.name_server), "orders") as brokers:
        ...     bounds = brokers.bounds(brokers.route().queues)
        >>> sorted(bounds)[0]
        MessageQueue(topic='orders', broker_name='broker-a', queue_id=0)

    Source: `DefaultMQAdminExtImpl`.
    """

    def __init__(self, config: ClientConfig, topic: str) -> None:
        self._topic, self._routes = topic, TopicRoutes(config)
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="rmqfast-plan")
        self._route: TopicRoute | None = None

    def route(self) -> TopicRoute:
        """Where the topic is now.

        Raises:
            UnknownTopicError: Nobody knows it.
            ClientError: No name server answers, or nobody may read the topic.
        """
        self._route = self._routes.of_topic(self._topic)
        return self._route

    def bounds(self, queues: Iterable[MessageQueue], *, is_patient: bool = False) -> dict[MessageQueue, Bounds]:
        """Where queues begin and end.

        Args:
            queues: Of the last `route`.
            is_patient: Whether a broker that does not answer now is passed over, and so are its queues.

        Raises:
            ClientError: A broker does not answer, or refuses.
        """
        by_broker: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            by_broker.setdefault(queue.broker_name, []).append(queue)
        found: dict[MessageQueue, Bounds] = {}
        asked = {name: self._pool.submit(self._bounds_at, name, wanted) for name, wanted in by_broker.items()}
        for name, answer in asked.items():
            try:
                found |= answer.result()
            except (RemotingError, ClientError) as error:
                if not is_patient or getattr(error, "code", _BUSY[0]) not in _BUSY:
                    raise _unasked(name, self._address(name), error) from error
                _log.warning("broker %s does not answer, its queues stay where they are: %s", name, error)
        return found

    def offsets_at(self, when: int, bounds: Mapping[MessageQueue, Bounds], *, group: str) -> dict[MessageQueue, int]:
        """The first offset of each queue whose message was stored at a time or later.

        Args:
            when: Milliseconds since 1970.
            bounds: The queues.
            group: In whose name messages are looked at.

        Raises:
            ClientError: A broker does not answer, or refuses.
        """

        def search(queue: MessageQueue) -> int:
            address = self._address(queue.broker_name)
            return offset_at(self._routes, address, queue, when, bounds[queue], group=group)

        return dict(zip(bounds, self._each(search, bounds), strict=True))

    def check_expression(self, subscription: SubscriptionData, group: str, *, is_patient: bool = False) -> None:
        """Has each broker compile an SQL92 expression: one that a broker does not understand it takes for all messages.

        Args:
            subscription: What is wanted.
            group: In whose name.
            is_patient: Whether a broker that does not answer now is passed over.

        Raises:
            ClientError: A broker does not take it.
        """
        if subscription.is_tag_type:
            return

        def check(broker_name: str) -> None:
            self._routes.api.check_client_config(self._address(broker_name), group, _CLIENT_ID, subscription)

        brokers = self._known().addresses
        for name, answer in {name: self._pool.submit(check, name) for name in brokers}.items():
            try:
                answer.result()
            except ResponseError as error:
                raise ClientError(
                    f"broker {name} does not filter by sql: {error}",
                    response_code=error.code,
                    next_step="correct the expression, or set enablePropertyFilter=true in its broker.conf; "
                    "or read all messages and filter by properties['...'] in Spark",
                ) from error
            except RemotingError as error:
                if not is_patient:
                    raise _unasked(name, self._address(name), error) from error

    def commit(self, group: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Stores offsets of a group at the brokers, so that tools see how far it is; what fails is logged.

        Args:
            group: The group.
            offsets: The next offset of each queue.
        """

        def store(queue: MessageQueue) -> None:
            address = self._address(queue.broker_name)
            self._routes.api.update_consumer_offset(address, group, queue, offsets[queue], oneway=False)

        for queue, answer in {queue: self._pool.submit(store, queue) for queue in offsets}.items():
            try:
                answer.result()
            except (RemotingError, ClientError) as error:
                _log.warning("group %s: the offset %d of %s is not stored: %s", group, offsets[queue], queue, error)

    def close(self) -> None:
        """Closes the connections."""
        self._routes.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _bounds_at(self, broker_name: str, queues: list[MessageQueue]) -> dict[MessageQueue, Bounds]:
        api, address = self._routes.api, self._address(broker_name)
        fields = {"topic": self._topic}
        body = api.ask(address, RequestCode.GET_TOPIC_STATS_INFO, fields, timeout=5 * api.timeout).body
        told = {item.queue: (item.min_offset, item.max_offset) for item in topic_offsets_of_body(body)}
        # brokers tell of the queues that are written to, and of a topic that shrinks more may be read
        more = {q: (api.min_offset(address, q), api.max_offset(address, q)) for q in queues if q not in told}
        return {queue: told[queue] if queue in told else more[queue] for queue in queues}

    def _each(self, ask: Callable[[MessageQueue], int], queues: Iterable[MessageQueue]) -> list[int]:
        listed = list(queues)
        answers = [self._pool.submit(ask, queue) for queue in listed]
        found = []
        for queue, answer in zip(listed, answers, strict=True):
            try:
                found.append(answer.result())
            except RemotingError as error:
                raise _unasked(queue.broker_name, self._address(queue.broker_name), error) from error
        return found

    def _known(self) -> TopicRoute:
        return self._route or self.route()

    def _address(self, broker_name: str) -> str:
        address = self._known().addresses.get(broker_name)
        if address is None:
            raise ClientError(
                f"broker {broker_name} is not in the route of topic {self._topic}",
                next_step="is it running, and registered at this name server?",
            )
        return address

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _unasked(name: str, address: str, error: Exception) -> ClientError:
    code: Any = getattr(error, "code", -1)
    return ClientError(
        f"broker {name} at {address} cannot be asked: {error}",
        response_code=code,
        next_step="see that it runs and that the driver and the executors reach that address, "
        "and that the account (accessKey, secretKey) may read the topic and use the group",
    )
