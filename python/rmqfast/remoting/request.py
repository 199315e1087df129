"""A request, in the form in which processors get it.

Source: `RemotingCommand`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rmqfast.remoting.channel import Channel
from rmqfast.remoting.response import VERSION


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
