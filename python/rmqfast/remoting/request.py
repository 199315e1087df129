"""A request, as processors see it.

Source: `RemotingCommand`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rmqfast.remoting.channel import Channel
from rmqfast.remoting.response import VERSION


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks for.

    Attributes:
        code: Says what is asked for: a `RequestCode`, or a number that nobody knows.
        ext_fields: The header of the code: texts by name, as they came.
        body: The bytes behind the header; empty where there are none.
        channel: Where it came from, and where the broker asks back.
        remark: A text, as of a transaction whose branch failed.
        version: Ordinal of the client's release.
        language: Name of the client's language; `None` for one that nobody knows.
        is_oneway: Nobody waits for an answer.
    """

    code: int
    ext_fields: Mapping[str, str]
    body: bytes
    channel: Channel
    remark: str | None = None
    version: int = VERSION
    language: str | None = "JAVA"
    is_oneway: bool = False
