"""A response, as processors return it and clients receive it.

Source: `RemotingCommand`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rmqfast.remoting.response_code import ResponseCode

#: The ordinal of 4.9.4 in `MQVersion.Version`: what this package says of itself.
VERSION = 401


@dataclass(frozen=True, slots=True, init=False)
class Response:
    """A response.

    Attributes:
        code: A `ResponseCode`, or an unknown number.
        remark: Text for people, mostly of errors.
        ext_fields: The header fields; `None` leaves the header out.
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
        # as `Message`: a draft has the same slots, and is not frozen
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
