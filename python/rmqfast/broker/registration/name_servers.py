"""Sends registrations to all name servers of a broker.

Source: RocketMQ's `BrokerOuterAPI`, `BrokerController`, `DefaultRequestProcessor`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rmqfast.broker.configuration.config import BrokerConfig
from rmqfast.errors import RmqError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.remoting import RemotingClient, RequestCode, Response, ResponseCode
from rmqfast.remoting.fastjson import decode, encode
from rmqfast.remoting.tls_properties import client_tls
from rmqfast.system import monotonic
from rmqfast.threads import new_thread

if TYPE_CHECKING:
    from rmqfast.remoting.credentials import Signer

__all__ = ["NameServers"]

_log = logger_of(__name__)
#: Where name servers keep which topics are ordered (`NamesrvUtil.NAMESPACE_ORDER_TOPIC_CONFIG`).
_ORDERED_TOPICS = "ORDER_TOPIC_CONFIG"
#: Seconds that a broker waits at its end.
_LEAVE_TIMEOUT = 1.0


class NameServers:
    """Registers at all name servers of a cluster; one that is down does not delay the others.

    Raises:
        ArgumentError: Its properties of TLS contradict each other.
    """

    def __init__(self, addresses: Sequence[str], config: BrokerConfig, credentials: Signer | None = None) -> None:
        self._config = config
        tls = client_tls(config, use_tls=config.flag("useTLS")) if addresses else None
        self._links = [_Link(RemotingClient(address, tls=tls), credentials) for address in addresses]

    @property
    def all_know(self) -> bool:
        """Whether each name server got all topics, and has answered since."""
        return all(link.knows_all for link in self._links)

    def register(self, topics: dict[str, Any]) -> list[dict[str, str]]:
        """Registers the broker and its topics everywhere, and waits for the answers.

        Returns:
            What each one that answered says of ordered topics.
        """
        if not self._links:
            return []
        fields, body, timeout = self._registration(), _body(topics), self._timeout()
        answers = self._each(lambda link: link.register(fields, body, timeout), timeout)
        return [_topics_in_answer(answer) for answer in answers]

    def retry(self, topics: dict[str, Any]) -> None:
        """Registers all topics at the name servers that do not have them; does not wait."""
        fields, body, timeout = self._registration(), _body(topics), self._timeout()
        for link in self._links:
            if not link.knows_all:
                new_thread(link.register, fields, body, timeout).start()

    def register_topics(self, topics: dict[str, Any], all_topics: Callable[[], dict[str, Any]]) -> None:
        """Registers some topics everywhere, and waits for the answers.

        A name server that may not know the other topics is notified of them, too: it would take what it got for all.
        """
        fields, timeout = self._registration(), self._timeout()
        some = _body(topics)
        self._each(lambda link: link.register_topics(fields, some, all_topics, timeout), timeout)

    def are_current(self, version: dict[str, Any]) -> bool:
        """Asks whether all name servers have this version of the topics; this keeps the broker alive there."""
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
        """Unregisters everywhere; waits a second at most."""
        fields = self._identity()
        self._each(lambda link: link.leave(fields), _LEAVE_TIMEOUT)

    def close(self) -> None:
        for link in self._links:
            link.close()

    def _registration(self) -> dict[str, str]:
        ha_address = f"{self._config.text('brokerIP2')}:{self._config.text('haListenPort')}"
        # without an address RocketMQ refuses a registration; `compressedRegister` is off in 4.9.4, too, unless set
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
        """Asks all at once; does not wait for those that did not answer the last time."""
        answers: list[Response] = []

        def work(link: _Link) -> None:
            answer = request(link)
            if answer is not None:
                answers.append(answer)

        # in parallel, as `BrokerOuterAPI`: one that hangs would hold up the others by its timeout
        threads = [(link.is_answering, new_thread(work, link)) for link in self._links]
        for _, thread in threads:
            thread.start()
        deadline = monotonic() + timeout + 0.1
        for is_answering, thread in threads:
            if is_answering:
                thread.join(max(0.0, deadline - monotonic()))
        return list(answers)


class _Link:
    """A connection to one name server.

    Attributes:
        knows_all: It got all topics, and all changes since.
        is_answering: It answered the last time; at first it is taken to.
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
        """Returns the answer; None for an error or none in time."""
        signed = fields if self._credentials is None else self._credentials.signed_fields(fields, body)
        if not self._lock.acquire(timeout=timeout if self.is_answering else 0):
            # it is asked already, with what was so then
            self._has_missed, self.knows_all = True, False
            return None
        try:
            if self._has_left and code == RequestCode.REGISTER_BROKER:
                return None  # it was on its way when the broker took its leave
            answer = self._client.request(code, signed, body, timeout=timeout)
        except RmqError as error:
            level = logging.WARNING if self.is_answering else logging.DEBUG  # it is tried every few seconds
            _log.log(level, "the name server %s was not told of this broker: %s", self._client.address, error)
            self.knows_all = self.is_answering = False
            return None
        finally:
            self._lock.release()
        self.is_answering = True
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return None  # as of ordered topics where there are none
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
