"""Parses the header fields of a request.

Source: `RemotingCommand.decodeCommandCustomHeader`, `CommandCustomHeader`.
"""

from __future__ import annotations

from collections.abc import Mapping

from rmqfast.errors import ResponseError
from rmqfast.remoting.codes import ResponseCode

_INT = 1 << 31


class Header:
    """Header fields by name. A missing or malformed field raises `ResponseError` with code 1.

    Example:
        >>> header = Header({"topic": "t", "queueId": "3", "isForce": "TRUE"})
        >>> header.text("topic"), header.number("queueId"), header.flag("isForce"), header.optional_text("group")
        ('t', 3, True, None)
        >>> header.number("queueOffset")
        Traceback (most recent call last):
            ...
        rmqfast.errors.ResponseError: CODE: 1  DESC: the header field queueOffset is missing
    """

    def __init__(self, ext_fields: Mapping[str, str]) -> None:
        self._fields = ext_fields

    def text(self, name: str) -> str:
        value = self._fields.get(name)
        if value is None:
            raise _wrong(f"the header field {name} is missing")
        return value

    def optional_text(self, name: str) -> str | None:
        return self._fields.get(name)

    def number(self, name: str, default: int | None = None) -> int:
        """Returns an integer of 64 bits. The field is required unless there is a default."""
        value = self._fields.get(name)
        if value is None:
            if default is None:
                raise _wrong(f"the header field {name} is missing")
            return default
        try:
            return _java_long(value)
        except ValueError:
            raise _wrong(f"the header field {name} is no number: {value[:40]!r}") from None

    def integer(self, name: str, default: int | None = None) -> int:
        """Returns an integer of 32 bits. The field is required unless there is a default."""
        value = self.number(name, default)
        if not -_INT <= value < _INT:
            raise _wrong(f"the header field {name} is no number of 32 bits: {value}")
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Returns True for `true` in upper or lower case, otherwise False. A missing field has the default."""
        value = self._fields.get(name)
        # Like Java's `Boolean.parseBoolean`.
        return default if value is None else value.lower() == "true"


def _java_long(text: str) -> int:
    digits = text[1:] if text[:1] in {"-", "+"} else text
    # The length first, since Python refuses to parse very long numbers.
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 19 or not -(1 << 63) <= int(text) < 1 << 63:
        raise ValueError
    return int(text)


def _wrong(remark: str) -> ResponseError:
    return ResponseError(ResponseCode.SYSTEM_ERROR, remark)
