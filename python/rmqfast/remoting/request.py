"""A request, its response and its connection, as processors receive and return them.

Source: RocketMQ's `RemotingCommand`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rmqfast._native import Channel as NativeChannel
from rmqfast.remoting.codes import ResponseCode

#: Ordinal of 4.9.4 in `MQVersion.Version`, which this package sends as its own version.
VERSION = 401


@dataclass(frozen=True, slots=True, init=False)
class Response:
    """A response to a request.

    Attributes:
        code: A `ResponseCode`, or an unknown number.
        remark: Text for people, mostly of errors.
        ext_fields: Header fields; `None` for a response without a header.
        body: The bytes behind the header.
        version: Ordinal of the server's release.
    """

    code: int
    remark: str | None
    ext_fields: Mapping[str, str] | None
    body: bytes = field(repr=False)
    version: int

    def __init__(
        self,
        code: int = ResponseCode.SUCCESS,
        remark: str | None = None,
        ext_fields: Mapping[str, str] | None = None,
        body: bytes = b"",
        version: int = VERSION,
    ) -> None:
        # As in `Message`, a mutable class with the same slots is faster than `object.__setattr__` for each field.
        draft: Any = self
        _set(draft, "__class__", _Draft)
        draft.code = code
        draft.remark = remark
        draft.ext_fields = ext_fields
        draft.body = body
        draft.version = version
        draft.__class__ = Response


_set = object.__setattr__


class _Draft:
    __slots__ = Response.__slots__


class Channel:
    """An open connection, with both addresses as `ip:port`. Two objects for the same connection are equal."""

    __slots__ = ("_native", "local_address", "remote_address")

    def __init__(self, native: NativeChannel) -> None:
        self._native = native
        self.remote_address: str = native.remote_address
        self.local_address: str = native.local_address

    @property
    def id(self) -> int:
        """The number of the connection, unique in this process."""
        return self._native.id  # the same for all objects of the connection

    @property
    def address(self) -> str:
        """The name and port with which the connection was opened, as `host:port`."""
        return self._native.address

    @property
    def is_open(self) -> bool:
        """Whether requests can still be sent."""
        return self._native.is_open

    def request(self, code: int, ext_fields: Mapping[str, str], body: bytes = b"", *, timeout: float = 3.0) -> Response:
        """Sends a request to the peer and returns the answer.

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


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a client.

    Attributes:
        code: A `RequestCode`, or an unknown number.
        ext_fields: The header fields, as received.
        body: The bytes behind the header.
        channel: The connection, for requests back to the client.
        remark: Text such as the reason of a failed transaction.
        version: Ordinal of the client's release.
        language: Name of the client's language; `None` if unknown.
        is_oneway: Whether the client expects no answer.
    """

    code: int
    ext_fields: Mapping[str, str]
    body: bytes
    channel: Channel
    remark: str | None = None
    version: int = VERSION
    language: str | None = "JAVA"
    is_oneway: bool = False
