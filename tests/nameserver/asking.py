"""Asks a name server."""

from __future__ import annotations

from collections.abc import Mapping

from rmqfast.nameserver import NameServer
from rmqfast.remoting import Request, Response
from tests.broker.client_doubles import Line


def ask(
    server: NameServer,
    code: int,
    fields: Mapping[str, str] | None = None,
    body: bytes = b"",
    *,
    version: int = 401,
    channel: Line | None = None,
) -> Response:
    """The answer; a name server asks nobody back."""
    channel = channel or Line()
    answer = server.process(Request(code, fields or {}, body, channel, version=version))
    assert (channel.asked, channel.sent) == ([], [])
    return answer
