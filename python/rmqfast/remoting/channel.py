"""The connection of a request. Processors answer over it, or send requests to the client."""

from __future__ import annotations

from collections.abc import Mapping

from rmqfast._native import Channel as NativeChannel
from rmqfast.remoting.response import Response


class Channel:
    """An open connection, with both addresses as `ip:port`. Two objects for the same connection are equal."""

    __slots__ = ("_native", "local_address", "remote_address")

    def __init__(self, native: NativeChannel) -> None:
        self._native = native
        self.remote_address: str = native.remote_address
        self.local_address: str = native.local_address

    @property
    def address(self) -> str:
        """The name and port with which the connection was opened, as `host:port`."""
        return self._native.address

    @property
    def is_open(self) -> bool:
        """Whether requests can still be sent."""
        return self._native.is_open

    def request(self, code: int, ext_fields: Mapping[str, str], body: bytes = b"", *, timeout: float = 3.0) -> Response:
        """Sends a request to the peer and waits for its answer.

        Raises:
            RemotingTimeoutError: No answer came within `timeout` seconds.
            ChannelClosedError: The connection is closed.
        """
        return response_of(self._native.request(code, dict(ext_fields), body, timeout))

    def send_oneway(self, code: int, ext_fields: Mapping[str, str], body: bytes = b"") -> None:
        """Sends a request that gets no answer. Does nothing if the connection is closed."""
        self._native.send_oneway(code, dict(ext_fields), body)

    def close(self) -> None:
        self._native.close()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Channel) and self._native == other._native

    def __hash__(self) -> int:
        return hash(self._native)

    def __repr__(self) -> str:
        return f"<Channel {self.remote_address}>"


def response_of(fields: tuple[int, str | None, dict[str, str], bytes, int]) -> Response:
    code, remark, ext_fields, body, version = fields
    return Response(code, remark, ext_fields, body, version)
