"""A connection that remembers whether it was closed."""

from __future__ import annotations

from collections.abc import Mapping

from rmqfast.nameserver import NameServer
from rmqfast.remoting import Request, Response


class Connection:
    """What the name server sees of a connection; it never sends anything on its own."""

    def __init__(self) -> None:
        self.is_open = True

    @property
    def remote_address(self) -> str:
        return "127.0.0.1:50000"

    @property
    def local_address(self) -> str:
        return "127.0.0.1:9876"

    def request(self, code: int, ext_fields: Mapping[str, str], body: bytes = b"", *, timeout: float = 3.0) -> Response:
        raise AssertionError(f"a name server asked for {code}")

    def send_oneway(self, code: int, ext_fields: Mapping[str, str], body: bytes = b"") -> None:
        raise AssertionError(f"a name server sent {code}")

    def close(self) -> None:
        self.is_open = False


def ask(
    server: NameServer,
    code: int,
    fields: Mapping[str, str] | None = None,
    body: bytes = b"",
    *,
    version: int = 401,
    channel: Connection | None = None,
) -> Response:
    return server.process(Request(code, fields or {}, body, channel or Connection(), version=version))
