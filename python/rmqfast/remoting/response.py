"""A response, as processors give it and clients get it.

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
    """What is answered.

    Attributes:
        code: How it ended: a `ResponseCode`, or a number that nobody knows.
        remark: What a person reads, of errors above all.
        ext_fields: The header of the code; `None` leaves it out.
        body: The bytes behind the header.
        version: Ordinal of the release of who answers.
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
