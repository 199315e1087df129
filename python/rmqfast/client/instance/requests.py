"""Asking one address, and telling errors from answers.

Source: `MQClientAPIImpl`.
"""

from __future__ import annotations

from collections.abc import Mapping

from rmqfast.client.instance.name_servers import NameServers
from rmqfast.errors import ResponseError
from rmqfast.remoting import Connections, Response, ResponseCode


class Requests:
    """What all families of requests have in common.

    Args:
        connections: What requests go out by.
        name_servers: Who is asked for routes.
        timeout: How long answers are waited for, in seconds, unless a call says otherwise.
    """

    def __init__(self, connections: Connections, name_servers: NameServers, *, timeout: float = 3.0) -> None:
        self.connections, self.name_servers, self.timeout = connections, name_servers, timeout

    def ask(
        self,
        address: str,
        code: int,
        ext_fields: Mapping[str, object] | None = None,
        body: bytes = b"",
        *,
        timeout: float | None = None,
    ) -> Response:
        """Asks and waits for the answer.

        Args:
            address: `host:port`.
            code: Says what is asked for.
            ext_fields: The header of the code; what is `None` is left out.
            body: The bytes behind the header.
            timeout: How long to wait, in seconds.

        Raises:
            ResponseError: The answer is an error; says whose.
            RemotingError: There is no answer.
        """
        wait = self.timeout if timeout is None else timeout
        return checked(
            self.connections.request(address, code, as_fields(ext_fields or {}), body, timeout=wait), address
        )

    def ask_behind(
        self,
        address: str,
        code: int,
        ext_fields: Mapping[str, object] | None = None,
        body: bytes = b"",
        *,
        timeout: float | None = None,
    ) -> Response:
        """As `ask`, over the connection of requests that are not answered: the broker has read those before.

        Raises:
            ResponseError: As `ask`.
            RemotingError: As `ask`.
        """
        wait = self.timeout if timeout is None else timeout
        return checked(
            self.connections.control(address, code, as_fields(ext_fields or {}), body, timeout=wait), address
        )

    def ask_name_server(
        self, code: int, ext_fields: Mapping[str, object] | None = None, *, timeout: float | None = None
    ) -> Response:
        """Asks the name server that is asked right now, or the next one that answers.

        Raises:
            ResponseError: The answer is an error.
            ClientError: There is no name server.
            RemotingError: There is no answer.
        """
        wait = self.timeout if timeout is None else timeout
        return checked(self.name_servers.request(code, as_fields(ext_fields or {}), timeout=wait))


def as_fields(values: Mapping[str, object]) -> dict[str, str]:
    """Header fields as texts; what is `None` is left out.

    Example:
        >>> as_fields({"topic": "t", "queueId": 3, "force": True, "group": None})
        {'topic': 't', 'queueId': '3', 'force': 'true'}

    Source: `RemotingCommand.makeCustomHeaderToNet`.
    """
    return {name: _text(value) for name, value in values.items() if value is not None}


def checked(response: Response, address: str | None = None) -> Response:
    """An answer that is SUCCESS.

    Raises:
        ResponseError: It is none; says who answered.
    """
    if response.code == ResponseCode.SUCCESS:
        return response
    raise ResponseError(response.code, response.remark or "", address)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
