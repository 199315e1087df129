"""A response, in the form in which processors return it and clients get it.

Source: `RemotingCommand`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rmqfast.remoting.response_code import ResponseCode

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
