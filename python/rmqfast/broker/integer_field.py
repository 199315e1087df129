"""Header fields that are whole numbers of 32 bits in RocketMQ."""

from __future__ import annotations

from rmqfast.errors import ResponseError
from rmqfast.remoting import Header, ResponseCode

_LIMIT = 1 << 31


def integer(header: Header, name: str, default: int | None = None) -> int:
    """A whole number of 32 bits; without a default it must be there.

    Raises:
        ResponseError: 1; says which field is missing, or is no such number.

    Example:
        >>> integer(Header({"queueId": "99999999999"}), "queueId")
        Traceback (most recent call last):
            ...
        rmqfast.errors.ResponseError: CODE: 1  DESC: the header field queueId is no number of 32 bits: 99999999999
    """
    value = header.number(name, default)
    if not -_LIMIT <= value < _LIMIT:
        remark = f"the header field {name} is no number of 32 bits: {value}"
        raise ResponseError(ResponseCode.SYSTEM_ERROR, remark)
    return value
