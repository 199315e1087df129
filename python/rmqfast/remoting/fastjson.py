"""Writes and reads JSON as RocketMQ does: keys may be numbers or queues, which JSON does not allow.

Source: `RemotingSerializable`; fastjson 1.2.69 below it; `TopicRouteData`,
`DefaultRequestProcessor.getRouteInfoByTopic`, `Double.toString`, `Double.null`.
"""

from __future__ import annotations

from typing import Any

from rmqfast._native import java_double, read_fastjson, write_fastjson

__all__ = ["decode", "encode", "java_double", "java_text"]


def encode(value: Any, *, standard: bool = False) -> bytes:
    r"""Returns a value as RocketMQ's JSON. Raises `ArgumentError` for a type without JSON form, or nesting over 64.

    Members of objects are sorted by name, queues keep their order. Members that are `None` are omitted. NaN and
    infinity become `null`. With `standard`, number keys are quoted, maps are sorted, and the output is ASCII.

    Example:
        >>> encode({"b": None, "a": {0: "x", 1: 1e7}, "c": [True, "é"]}).decode()
        '{"a":{0:"x",1:1.0E7},"c":[true,"é"]}'
    """
    return write_fastjson(value, standard=standard)


def decode(data: bytes) -> Any:
    """Parses a body. `None` for an empty body; raises `RemotingProtocolError` for a malformed one.

    A number key stays a number, an object key becomes a `MessageQueue`. `{"$ref": ...}` stays unresolved. Invalid UTF-8
    becomes U+FFFD. More than two million values are refused, since Python objects take far more memory than the body.
    """
    return read_fastjson(data)


def java_text(text: str | None) -> str:
    """Returns a string as Java appends it to another string: `None` becomes "null"."""
    return "null" if text is None else text
