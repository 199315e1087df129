"""Registers a broker with name servers, and keeps the list of their addresses.

Source: RocketMQ's `BrokerOuterAPI`, `BrokerController`, `DefaultRequestProcessor`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rmqfast.broker.configuration.config import BrokerConfig
from rmqfast.broker.topics.topic_manager import TopicManager, mask_permission
from rmqfast.errors import RmqError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.remoting import RemotingClient, RequestCode, Response, ResponseCode
from rmqfast.remoting.fastjson import decode, encode
from rmqfast.remoting.tls import client_tls
from rmqfast.store.config import TopicConfig
from rmqfast.system import monotonic
from rmqfast.threads import new_condition, new_thread

if TYPE_CHECKING:
    from rmqfast.remoting.credentials import Signer


_log = logger_of(__name__)
#: Namespace of the ordered topics in name servers (`NamesrvUtil.NAMESPACE_ORDER_TOPIC_CONFIG`).
_ORDERED_TOPICS = "ORDER_TOPIC_CONFIG"
#: Seconds to wait for the last request when the broker stops.
_LEAVE_TIMEOUT = 1.0


class NameServers:
    """Registers at all name servers. A name server that is down does not delay the others."""

    def __init__(self, addresses: Sequence[str], config: BrokerConfig, credentials: Signer | None = None) -> None:
        self._config = config
        tls = client_tls(config, use_tls=config.flag("useTLS")) if addresses else None
        self._links = [_Link(RemotingClient(address, tls=tls), credentials) for address in addresses]

    @property
    def all_know(self) -> bool:
        """Whether each name server has all topics and all later changes."""
        return all(link.knows_all for link in self._links)

    def register(self, topics: dict[str, Any]) -> list[dict[str, str]]:
        """Registers the broker and all topics at all name servers. Returns the ordered topics in each answer."""
        if not self._links:
            return []
        fields, body, timeout = self._registration(), _body(topics), self._timeout()
        answers = self._each(lambda link: link.register(fields, body, timeout), timeout)
        return [_topics_in_answer(answer) for answer in answers]

    def retry(self, topics: dict[str, Any]) -> None:
        """Registers all topics at name servers that do not have them all. Does not wait."""
        fields, body, timeout = self._registration(), _body(topics), self._timeout()
        for link in self._links:
            if not link.knows_all:
                new_thread(link.register, fields, body, timeout).start()

    def register_topics(self, topics: dict[str, Any], all_topics: Callable[[], dict[str, Any]]) -> None:
        """Registers some topics at all name servers, and waits for the answers.

        A name server that may lack other topics gets all topics, since it would take a part for the whole.
        """
        fields, timeout = self._registration(), self._timeout()
        some = _body(topics)
        self._each(lambda link: link.register_topics(fields, some, all_topics, timeout), timeout)

    def are_current(self, version: dict[str, Any]) -> bool:
        """Whether all name servers have this version of the topics. The request also counts as a sign of life."""
        fields, body, timeout = self._identity(), encode(version), self._timeout()
        answers = self._each(lambda link: link.request(RequestCode.QUERY_DATA_VERSION, fields, body, timeout), timeout)
        current = [answer for answer in answers if (answer.ext_fields or {}).get("changed") == "false"]
        return len(current) == len(self._links)

    def ask_ordered_topics(self) -> list[dict[str, str]]:
        fields, timeout = {"namespace": _ORDERED_TOPICS}, self._timeout()
        answers = self._each(
            lambda link: link.request(RequestCode.GET_KVLIST_BY_NAMESPACE, fields, b"", timeout), timeout
        )
        return [_topics_in_answer(answer) for answer in answers]

    def unregister(self) -> None:
        """Unregisters at all name servers. Waits at most one second."""
        fields = self._identity()
        self._each(lambda link: link.leave(fields), _LEAVE_TIMEOUT)

    def close(self) -> None:
        for link in self._links:
            link.close()

    def _registration(self) -> dict[str, str]:
        ha_address = f"{self._config.text('brokerIP2')}:{self._config.text('haListenPort')}"
        # RocketMQ refuses a registration without address; `compressedRegister` is off by default in 4.9.4, too.
        return self._identity() | {"haServerAddr": ha_address, "compressed": "false", "bodyCrc32": "0"}

    def _identity(self) -> dict[str, str]:
        config = self._config
        return {
            "brokerAddr": config.broker_address,
            "brokerId": str(config.broker_id),
            "brokerName": config.text("brokerName"),
            "clusterName": config.text("brokerClusterName"),
        }

    def _timeout(self) -> float:
        return self._config.number("registerBrokerTimeoutMills") / 1000

    def _each(self, request: Callable[[_Link], Response | None], timeout: float) -> list[Response]:
        """Sends requests to all name servers in parallel. Returns the answers. Waits only for servers that answer."""
        answers: list[Response] = []

        def work(link: _Link) -> None:
            answer = request(link)
            if answer is not None:
                answers.append(answer)

        # In parallel, as in `BrokerOuterAPI`, so that one that hangs does not delay the others.
        threads = [(link.is_answering, new_thread(work, link)) for link in self._links]
        for _, thread in threads:
            thread.start()
        deadline = monotonic() + timeout + 0.1
        for is_answering, thread in threads:
            if is_answering:
                thread.join(max(0.0, deadline - monotonic()))
        return list(answers)


class _Link:
    """The connection to one name server.

    `knows_all` says that the server has all topics and all changes since, `is_answering` that it answered the last
    request; initially assumed.
    """

    def __init__(self, client: RemotingClient, credentials: Signer | None) -> None:
        self._client = client
        self._credentials = credentials
        self._lock = QuietLock()
        self._has_left = False
        self._has_missed = False
        self.knows_all = False
        self.is_answering = True

    def register(self, fields: dict[str, str], body: bytes, timeout: float) -> Response | None:
        self._has_missed = False
        answer = self.request(RequestCode.REGISTER_BROKER, fields, body, timeout)
        # A change may have been missed while this request was under way.
        self.knows_all = answer is not None and not self._has_missed
        return answer

    def register_topics(
        self, fields: dict[str, str], some: bytes, all_topics: Callable[[], dict[str, Any]], timeout: float
    ) -> Response | None:
        if self.knows_all:
            answer = self.request(RequestCode.REGISTER_BROKER, fields, some, timeout)
            if answer is not None:
                return answer
        return self.register(fields, _body(all_topics()), timeout)

    def leave(self, fields: dict[str, str]) -> Response | None:
        self._has_left = True
        return self.request(RequestCode.UNREGISTER_BROKER, fields, b"", _LEAVE_TIMEOUT)

    def request(self, code: int, fields: Mapping[str, str], body: bytes, timeout: float) -> Response | None:
        """Returns the answer. None after an error or the timeout."""
        signed = fields if self._credentials is None else self._credentials.signed_fields(fields, body)
        # One request at a time; do not wait behind a request to a silent server.
        if not self._lock.acquire(timeout=timeout if self.is_answering else 0):
            # Another request with older topics is still waiting.
            self._has_missed, self.knows_all = True, False
            return None
        try:
            if self._has_left and code == RequestCode.REGISTER_BROKER:
                return None  # a late registration must not follow the sign-off
            answer = self._client.request(code, signed, body, timeout=timeout)
        except RmqError as error:
            # the retry every few seconds must not fill the log
            level = logging.WARNING if self.is_answering else logging.DEBUG
            _log.log(level, "the name server %s was not told of this broker: %s", self._client.address, error)
            self.knows_all = self.is_answering = False
            return None
        finally:
            self._lock.release()
        self.is_answering = True
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return None  # the answer when no topic is ordered
        if answer.code:
            _log.warning("the name server %s refused: %d %s", self._client.address, answer.code, answer.remark)
            return None
        return answer

    def close(self) -> None:
        self._client.close()


def _body(topics: dict[str, Any]) -> bytes:
    return encode({"filterServerList": [], "topicConfigSerializeWrapper": topics})


def _topics_in_answer(answer: Response) -> dict[str, str]:
    table = decode(answer.body).get("table") if answer.body else None
    return {str(name): str(value) for name, value in table.items()} if isinstance(table, dict) else {}


#: Seconds until a name server that did not answer is asked again.
_RETRY_INTERVAL = 2.0
#: Seconds that the creator of a topic waits for the registration, so that clients find the route at once.
_PATIENCE, _PATIENCE_WHILE_ONE_IS_DOWN = 3.0, 0.2
#: With more topics than this, the creator does not wait; these come from a client with many groups.
_WAITED_FOR = 16
#: Topics per change and request, so that small changes do not wait for a large one.
_PIECE = 16


class Registrar:
    """Registers all topics at the start, later only changed topics. Compares versions every 30 seconds.

    One thread sends the registrations, so that requests to the broker hardly wait for them.
    """

    def __init__(self, name_servers: NameServers, topics: TopicManager, config: Callable[[], BrokerConfig]) -> None:
        self._name_servers = name_servers
        self._topics = topics
        self._config = config
        self._changed = new_condition()
        self._changes: list[_Change] = []
        self._is_stopped = False
        self._versioning = QuietLock()
        #: Version of the last registration; name servers accept each version only once.
        self._last_version: Any = None
        self._thread = new_thread(self._run, name="rmqfast-register")

    def start(self) -> None:
        """Registers for the first time. Waits for a name server that is down at most `registerBrokerTimeoutMills`."""
        self._register()
        self._thread.start()

    def register_changes(self, topics: Sequence[TopicConfig] | None) -> None:
        """Registers some topics; None means all. Waits a moment for the answers if there are few topics."""
        change = _Change(None if topics is None else list(topics))
        with self._changed:
            self._changes.append(change)
            self._changed.notify_all()
            if topics is None or len(topics) <= _WAITED_FOR:
                patience = _PATIENCE if self._name_servers.all_know else _PATIENCE_WHILE_ONE_IS_DOWN
                self._changed.wait_for(lambda: change.is_done or self._is_stopped, patience)

    def stop(self) -> None:
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
        self._name_servers.unregister()
        self._name_servers.close()

    def _run(self) -> None:
        next_time = monotonic() + self._period()
        while True:
            wait = next_time - monotonic() if self._name_servers.all_know else _RETRY_INTERVAL
            with self._changed:
                self._changed.wait_for(lambda: self._changes or self._is_stopped, wait)
                if self._is_stopped:
                    return
                changes = list(self._changes)
            if changes:
                self._send(changes)
            elif monotonic() < next_time:
                self._name_servers.retry(self._all_topics())
            else:
                self._refresh()
                next_time = monotonic() + self._period()

    def _send(self, changes: Sequence[_Change]) -> None:
        """Sends a registration with the next topics of each change, and drops changes that are finished."""
        topics: list[TopicConfig] = []
        for change in changes:
            topics += change.take(_PIECE)
        if any(change.is_of_all for change in changes):
            self._register()
        elif topics:
            self._name_servers.register_topics(self._registration_of(topics), self._all_topics)
        with self._changed:
            for change in changes:
                change.is_done = not change.pending
            self._changes = [change for change in self._changes if not change.is_done]
            self._changed.notify_all()

    def _refresh(self) -> None:
        """Registers all topics again, unless every name server has the current version."""
        if not self._name_servers.are_current(self._topics.data_version.to_json()):
            self._register()
            return
        for ordered in self._name_servers.ask_ordered_topics():
            self._topics.update_order_topics(ordered)

    def _register(self) -> None:
        try:
            for ordered in self._name_servers.register(self._all_topics()):
                self._topics.update_order_topics(ordered)
        except Exception:  # noqa: BLE001  # the next attempt may succeed
            _log.exception("the name servers could not be told of this broker")

    def _period(self) -> float:
        # RocketMQ's bounds, ten seconds to a minute; a broker is removed after 120 seconds.
        return min(max(self._config().number("registerNameServerPeriod"), 10_000), 60_000) / 1000

    def _all_topics(self) -> dict[str, Any]:
        return self._registration_of(None)

    def _registration_of(self, topics: Iterable[TopicConfig] | None) -> dict[str, Any]:
        """Returns the registration of some or all topics, with a version that was not used before."""
        with self._versioning:
            # A name server ignores topics with a version that it already has, even if it missed some of them.
            if self._topics.data_version.to_json() == self._last_version:
                self._topics.advance()
            registration = self._wrapper(topics)
            self._last_version = registration["dataVersion"]
            return registration

    def _wrapper(self, topics: Iterable[TopicConfig] | None = None) -> dict[str, Any]:
        permission = self._config().number("brokerPermission")
        return self._topics.wrapper(topics, lambda topic: mask_permission(topic, permission))


class _Change:
    """Topics that are to be registered.

    `is_of_all` stands for all topics. `pending` are the topics still to be sent. `is_done` says that name servers have
    all of them.
    """

    def __init__(self, topics: list[TopicConfig] | None) -> None:
        self.is_of_all = topics is None
        self.pending = topics or []
        self.is_done = False

    def take(self, count: int) -> list[TopicConfig]:
        batch, self.pending = self.pending[:count], self.pending[count:]
        return batch
