"""Updates routes and passes them on to consumers and producers.

Source: `MQClientInstance.updateTopicRouteInfoFromNameServer`, `DefaultMQProducerImpl`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from rmqfast._native import RouteTable, no_route_error, subscribe_queues
from rmqfast.client.instance.members import Members
from rmqfast.client.instance.namespaces import RETRY_PREFIX
from rmqfast.errors import ClientError, RemotingError, ResponseError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.remoting.protocol.topic_route_data import TopicRouteData
from rmqfast.system import monotonic

_log = logger_of(__name__)

AUTO_CREATE_TOPIC = "TBW102"
_WAIT_FOR_LOCK = 3.0
#: Seconds for which every check asks for a missing topic; later only every tenth check does.
SOON = 60.0
LATER = 10


class ClientErrorCode(IntEnum):
    """Codes of errors that the client raises itself, without an answer of a server."""

    CONNECT_BROKER_EXCEPTION = 10001
    ACCESS_BROKER_TIMEOUT = 10002
    BROKER_NOT_EXIST_EXCEPTION = 10003
    NO_NAME_SERVER_EXCEPTION = 10004
    NOT_FOUND_TOPIC_EXCEPTION = 10005
    REQUEST_TIMEOUT_EXCEPTION = 10006
    CREATE_REPLY_MESSAGE_EXCEPTION = 10007


class FoundBroker(NamedTuple):
    """A broker from which a consumer can read.

    Attributes:
        address: `host:port`.
        is_slave: Whether the broker is a slave.
        version: Ordinal of the broker's release; 0 before the first answer to a heartbeat.
    """

    address: str
    is_slave: bool
    version: int


class RouteUpdater:
    def __init__(
        self,
        routes: RouteTable,
        members: Members,
        fetch: Callable[[str], TopicRouteData],
        *,
        timeout: float = _WAIT_FOR_LOCK,
    ) -> None:
        self._routes, self._members, self._fetch, self._timeout = routes, members, fetch, timeout
        self._lock = QuietLock()
        self._failures: dict[str, ResponseError] = {}
        self._is_out = self._is_closed = False

    def close(self) -> None:
        """Stops warnings about name servers. Called before the connections are closed."""
        self._is_closed = True

    def update(self, topic: str, *, default_topic: str | None = None, default_queue_nums: int = 4) -> bool:
        """Fetches the route of a topic. Returns whether it changed. If the topic is unknown, the known route stays."""
        if not self._lock.acquire(timeout=self._timeout):
            _log.warning("the route of topic %s is not updated: another one is still waited for", topic)
            return False
        try:
            route = self._fetched(topic, default_topic)
            if route is None:
                return False
            # the broker will create the missing topic with this number of queues at the first message
            return self._take(topic, route, None if default_topic is None else default_queue_nums)
        finally:
            self._lock.release()

    def update_all(self) -> None:
        """Fetches the routes of all topics of consumers and producers. Stops if no name server answers."""
        for topic in self._members.topics():
            try:
                self.update(topic)
            except ClientError as error:
                # one warning per outage, not per round
                (_log.debug if self._is_out or self._is_closed else _log.warning)("routes are not updated: %s", error)
                self._is_out = True
                return
        if self._is_out:
            _log.info("routes are updated again")
        self._is_out = False

    def no_route(self, topic: str) -> ClientError:
        """Returns the error for a topic without a route."""
        failure = self._failures.get(topic)
        return no_route_error(topic, None if failure is None else (failure.code, failure.remark))

    def _fetched(self, topic: str, default_topic: str | None) -> TopicRouteData | None:
        try:
            route = self._fetch(topic if default_topic is None else default_topic)
        except ResponseError as error:
            # its traceback refers to clients, which would otherwise be kept alive
            # kept for the error of a later send
            error = error.with_traceback(None)
            # both may be missing: brokers create a retry topic at a heartbeat, the default topic only if configured
            if not topic.startswith(RETRY_PREFIX) and topic != AUTO_CREATE_TOPIC:
                _log.info("no route of topic %s: %s", topic, error)
            self._failures[topic] = error
            return None
        except RemotingError as error:
            raise unreachable(error) from error
        self._failures.pop(topic, None)
        return route

    def _take(self, topic: str, route: TopicRouteData, new_topic_queues: int | None) -> bool:
        was_known = self._routes.get(topic) is not None
        is_new = self._routes.put(topic, route, new_topic_queues=new_topic_queues)
        # a consumer that was added after the last fetch lacks the queues, although the route has not changed
        # consumers are only notified if something changed for them
        if not is_new and not self._members.lacks_queues(topic):
            return False
        _log.info("the route of topic %s is %s", topic, "another one" if was_known else "known")
        queues = subscribe_queues(topic, self._routes.get(topic) or route)
        for group, consumer in self._members.consumers().items():
            try:
                consumer.update_topic_subscribe_info(topic, queues)
            except Exception:  # noqa: BLE001 - the others are notified, too
                _log.exception("group %s did not take the route of topic %s", group, topic)
        return True


def unreachable(error: RemotingError) -> ClientError:
    """Returns the error to raise if no name server answers."""
    return ClientError(
        str(error),
        response_code=ClientErrorCode.CONNECT_BROKER_EXCEPTION,
        next_step="see that a name server runs there and that name_server is its address; what runs goes on by itself",
    )


class MissingRoutes:
    """Fetches missing routes of subscribed topics often, so that a consumer of a new topic does not wait long.

    Java's clients only ask every 30 seconds.
    """

    def __init__(
        self, members: Members, update: Callable[[str], bool], *, clock: Callable[[], float] = monotonic
    ) -> None:
        self._members, self._update, self._clock = members, update, clock
        self._since: dict[str, float] = {}
        self._looks = 0

    def look(self) -> bool:
        """Fetches the missing routes. Returns whether a route was found.

        Stops if no name server answers, which `RouteUpdater.update_all` logs.
        """
        now, is_one_new = self._clock(), False
        self._looks += 1
        lacking = self._lacking()
        # the time since which each topic is missing
        self._since = {topic: self._since.get(topic, now) for topic in lacking}
        for topic, since in self._since.items():
            if now - since < SOON or self._looks % LATER == 0:
                try:
                    is_one_new |= self._update(topic)
                # no name server answers: the other topics would wait, too
                except ClientError:
                    return is_one_new
        return is_one_new

    def _lacking(self) -> list[str]:
        """Returns the topics without known queues. Retry topics are left out, since a heartbeat creates them."""
        return [
            topic
            for topic in self._members.subscribed_topics()
            if not topic.startswith(RETRY_PREFIX) and self._members.lacks_queues(topic)
        ]
