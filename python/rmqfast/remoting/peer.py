"""The extension's channel, as a `Channel` for processors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rmqfast._native import Channel as NativeChannel
from rmqfast.remoting.response import Response


class Peer:
    """An open connection; two of the same connection are equal. A `rmqfast.remoting.Channel`."""

    __slots__ = ("_native", "local_address", "remote_address")

    def __init__(self, native: NativeChannel) -> None:
        self._native = native
        self.remote_address: Final = native.remote_address
        self.local_address: Final = native.local_address

    @property
    def address(self) -> str:
        """The peer as whoever opened the connection calls it: `host:port`."""
        return self._native.address

    @property
    def is_open(self) -> bool:
        """See `Channel`."""
        return self._native.is_open

    def request(self, code: int, ext_fields: Mapping[str, str], body: bytes = b"", *, timeout: float = 3.0) -> Response:
        """See `Channel`."""
        return answer_of(self._native.request(code, dict(ext_fields), body, timeout))

    def send_oneway(self, code: int, ext_fields: Mapping[str, str], body: bytes = b"") -> None:
        """See `Channel`."""
        self._native.send_oneway(code, dict(ext_fields), body)

    def close(self) -> None:
        """See `Channel`."""
        self._native.close()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Peer) and self._native == other._native

    def __hash__(self) -> int:
        return hash(self._native)

    def __repr__(self) -> str:
        return f"<Peer {self.remote_address}>"


def answer_of(fields: tuple[int, str | None, dict[str, str], bytes, int]) -> Response:
    """What the extension says of an answer, as a value."""
    code, remark, ext_fields, body, version = fields
    return Response(code, remark, ext_fields, body, version)
