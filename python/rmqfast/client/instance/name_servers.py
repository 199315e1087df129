"""Sends requests to name servers: always to the same one, until it does not answer.

Source: `NettyRemotingClient.getAndCreateNameserverChannel`, `NameServerAddressUtils`, `ClientErrorCode`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Protocol

from rmqfast import _native
from rmqfast.errors import ClientError, RemotingConnectError, RemotingError
from rmqfast.logs import logger_of
from rmqfast.remoting import Response
from rmqfast.threads import new_lock

_log = logger_of(__name__)


class CanRequest(Protocol):
    """Sends requests."""

    def request(
        self,
        address: str,
        code: int,
        ext_fields: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        timeout: float = 3.0,
    ) -> Response:
        """Asks and waits for the answer."""


class NameServers:
    """The name servers of a client: shuffled, one chosen, the next one when that fails."""

    def __init__(
        self, addresses: Sequence[str], connections: CanRequest, *, chance: random.Random | None = None
    ) -> None:
        self._addresses = list(addresses)
        (chance or random.Random()).shuffle(self._addresses)  # noqa: S311 - it spreads load, it hides nothing
        self._connections = connections
        self._lock = new_lock()
        self._chosen = 0

    @property
    def addresses(self) -> tuple[str, ...]:
        """All addresses."""
        return tuple(self._addresses)

    @property
    def chosen(self) -> str | None:
        """The address that gets the next request; `None` if there are none."""
        return self._addresses[self._chosen] if self._addresses else None

    def request(
        self, code: int, ext_fields: Mapping[str, str] | None = None, body: bytes = b"", *, timeout: float = 3.0
    ) -> Response:
        """Asks one name server after the other until one answers.

        Raises:
            ClientError: There is no name server (10004).
            RemotingConnectError: None answered; the message has each failure.
        """
        self.check()
        failures: list[str] = []
        for _ in self._addresses:
            chosen = self._chosen
            try:
                return self._connections.request(self._addresses[chosen], code, ext_fields, body, timeout=timeout)
            except RemotingError as error:
                failures.append(_failure(self._addresses[chosen], error))
                self._go_on(chosen)
        raise RemotingConnectError("; ".join(failures))

    def check(self) -> None:
        """Raises `ClientError` (10004) if there is no name server."""
        if not self._addresses:
            raise ClientError(
                "No name server address, please set it.",
                response_code=ClientErrorCode.NO_NAME_SERVER_EXCEPTION,
                next_step='give name_server="host:9876", or set NAMESRV_ADDR in the environment',
            )

    def _go_on(self, failed: int) -> None:
        """Chooses the next address, unless another thread did."""
        with self._lock:
            if self._chosen == failed:
                self._chosen = (failed + 1) % len(self._addresses)
        if len(self._addresses) > 1:
            _log.warning("name server %s does not answer: %s is asked", self._addresses[failed], self.chosen)


def _failure(address: str, error: RemotingError) -> str:
    """A failure with its address, which the error of a refused connection names already."""
    text = str(error)
    return text if text.startswith(f"connect to <{address}>") else f"connect to <{address}> failed: {text}"


def parse_name_servers(text: str) -> tuple[str, ...]:
    """The addresses in a text.

    Args:
        text: `host:port`, several separated by `;`; an endpoint `http://MQ_INST_...:port` is one, too.

    Raises:
        ArgumentError: One is no `host:port`.

    Example:
        >>> parse_name_servers("a:9876; b:9876;"), parse_name_servers("http://MQ_INST_1_x.host:80")
        (('a:9876', 'b:9876'), ('MQ_INST_1_x.host:80',))

    Source: `RemotingUtil.string2SocketAddress`, `NameServerAddressUtils.getNameSrvAddrFromNamesrvEndpoint`.
    """
    return tuple(_native.parse_name_servers(text))


def namespace_of_endpoint(text: str) -> str | None:
    """The namespace that an endpoint names.

    Example:
        >>> namespace_of_endpoint("http://MQ_INST_1_x.host:80"), namespace_of_endpoint("host:9876")
        ('MQ_INST_1_x', None)

    Source: `NameServerAddressUtils.parseInstanceIdFromEndpoint`.
    """
    return _native.namespace_of_endpoint(text)


class ClientErrorCode(IntEnum):
    """The codes of errors that no server answered with."""

    CONNECT_BROKER_EXCEPTION = 10001
    ACCESS_BROKER_TIMEOUT = 10002
    BROKER_NOT_EXIST_EXCEPTION = 10003
    NO_NAME_SERVER_EXCEPTION = 10004
    NOT_FOUND_TOPIC_EXCEPTION = 10005
    REQUEST_TIMEOUT_EXCEPTION = 10006
    CREATE_REPLY_MESSAGE_EXCEPTION = 10007
