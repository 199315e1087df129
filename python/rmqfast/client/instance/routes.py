"""Updates routes and passes them on to consumers and producers.

Source: `MQClientInstance.updateTopicRouteInfoFromNameServer`, `DefaultMQProducerImpl`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from rmqfast._native import RouteTable
from rmqfast.client.instance.members import Members
from rmqfast.client.instance.namespaces import RETRY_PREFIX
from rmqfast.errors import ClientError, ResponseError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.system import monotonic

_log = logger_of(__name__)

AUTO_CREATE_TOPIC = "TBW102"
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
        self, routes: RouteTable, members: Members, *, timeout: float, clock: Callable[[], float] = monotonic
    ) -> None:
        self._routes, self._members, self._timeout, self._clock = routes, members, timeout, clock
        # one fetch at a time, so that consumers do not get an older route after a newer one
        self._lock = QuietLock()
        self._missing_since: dict[str, float] = {}
        self._looks = 0
        self._is_out = self._is_closed = False

    def close(self) -> None:
        """Stops warnings about name servers. Called before the connections are closed."""
        self._is_closed = True

    def update(self, topic: str, default: tuple[str, int] | None = None) -> bool:
        """Fetches the route of a topic, see `RouteTable.update`. Returns whether the route changed."""
        if not self._lock.acquire(timeout=self._timeout):
            _log.warning("the route of topic %s is not updated: another one is still waited for", topic)
            return False
        try:
            was_known = self._routes.get(topic) is not None
            is_new = self._routes.update(topic, default)
            # a consumer that was added after the last fetch lacks the queues, although the route has not changed
            # consumers are only notified if something changed for them
            if not is_new and not self._members.lacks_queues(topic):
                return False
            _log.info("the route of topic %s is %s", topic, "another one" if was_known else "known")
            self._notify_consumers(topic)
        except ResponseError as error:
            # both may be missing: brokers create a retry topic at a heartbeat, the default topic only if configured
            if not topic.startswith(RETRY_PREFIX) and topic != AUTO_CREATE_TOPIC:
                _log.info("no route of topic %s: %s", topic, error)
            return False
        else:
            return True
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

    def update_missing(self) -> bool:
        """Fetches missing routes of subscribed topics. Returns whether any of them was found.

        Called often, so that the first messages are pulled soon: Java's clients only ask every 30 seconds. Stops if no
        name server answers, which `update_all` logs.
        """
        now, is_one_new = self._clock(), False
        self._looks += 1
        # brokers create retry topics at a heartbeat
        topics = [topic for topic in self._members.subscribed_topics() if not topic.startswith(RETRY_PREFIX)]
        missing = filter(self._members.lacks_queues, topics)
        self._missing_since = {topic: self._missing_since.get(topic, now) for topic in missing}
        for topic, since in self._missing_since.items():
            if now - since < SOON or self._looks % LATER == 0:
                try:
                    is_one_new |= self.update(topic)
                # no name server answers: the other topics would wait, too
                except ClientError:
                    return is_one_new
        return is_one_new

    def _notify_consumers(self, topic: str) -> None:
        queues = self._routes.readable_queues(topic)
        for group, consumer in self._members.consumers().items():
            try:
                consumer.update_topic_subscribe_info(topic, queues)
            except Exception:  # noqa: BLE001 - the others are notified, too
                _log.exception("group %s did not take the route of topic %s", group, topic)
