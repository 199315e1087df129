"""Writes and reads JSON as RocketMQ does: keys may be numbers or queues, which JSON does not allow.

Source: `RemotingSerializable`; fastjson 1.2.69 below it; `TopicRouteData`,
`DefaultRequestProcessor.getRouteInfoByTopic`, `Double.toString`, `Double.null`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from rmqfast._native import read_fastjson
from rmqfast.errors import ArgumentError
from rmqfast.message import MessageQueue

#: Limit of nested objects and arrays.
MAX_DEPTH = 64

_ESCAPED = re.compile('["\\\\\x00-\x1f\x7f-\x9f\u2028\u2029]')
_ESCAPED_PLAIN = re.compile("[\x7f-\x9f\u2028\u2029]")
#: Matches all characters outside of the plain ones: a class that lists all of Unicode takes milliseconds to compile.
_ESCAPED_STANDARD = re.compile(r"[^ !#-.0-\[\]-~]")
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\", "/": "\\/"}


def encode(value: Any, *, standard: bool = False) -> bytes:
    r"""Returns a value as RocketMQ's JSON. Raises `ArgumentError` for a type without JSON form, or nesting over 64.

    Members of objects are sorted by name, queues keep their order. Members that are `None` are omitted. NaN and
    infinity become `null`. With `standard`, number keys are quoted, maps are sorted, and the output is ASCII.

    Example:
        >>> encode({"b": None, "a": {0: "x", 1: 1e7}, "c": [True, "é"]}).decode()
        '{"a":{0:"x",1:1.0E7},"c":[true,"é"]}'
    """
    text: list[str] = []
    _Writer(text.append, standard=standard).write(value, 0)
    return "".join(text).encode("utf-8", "replace")


def decode(data: bytes) -> Any:
    """Parses a body. `None` for an empty body; raises `RemotingProtocolError` for a malformed one.

    A number key stays a number, an object key becomes a `MessageQueue`. `{"$ref": ...}` stays unresolved. Invalid UTF-8
    becomes U+FFFD. More than two million values are refused, since Python objects take far more memory than the body.
    """
    return read_fastjson(data)


_write_plain = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
_write_in_order = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_PLAIN_SCALARS = {str, int, bool}


def _plain_text(members: Mapping[Any, Any]) -> str | None:
    """Returns the JSON of Python's own encoder, which is ten times as fast. `None` if fastjson's would differ."""
    if type(members) is not dict or not _PLAIN_SCALARS.issuperset(map(type, members.values())):
        return None
    if set(map(type, members)) != {str}:
        return None
    # Python and fastjson escape differently, so strings with escapes are left to `_Writer`.
    text = _write_plain(members)
    return None if "\\" in text or _ESCAPED_PLAIN.search(text) else text


def _plain_table(items: Sequence[tuple[Any, Any]]) -> str | None:
    """Encodes a table of simple objects, such as all topics, in one call. `None` if fastjson's JSON would differ."""
    for key, value in items:
        if type(key) is not str or type(value) is not dict or not _PLAIN_SCALARS.issuperset(map(type, value.values())):
            return None
        names = list(value)
        # `_write_in_order` does not sort, so the members must be sorted already.
        if set(map(type, names)) != {str} or names != sorted(names):
            return None
    text = _write_in_order(dict(items))
    return None if "\\" in text or _ESCAPED_PLAIN.search(text) else text


class _Writer:
    def __init__(self, put: Any, *, standard: bool) -> None:
        self._put = put
        self._standard = standard

    def write(self, value: Any, depth: int) -> None:
        """Writes a value. `depth` is how deeply it is nested."""
        if isinstance(value, str):
            self._put(self._quote(value))
        elif isinstance(value, bool | int | float | Enum) or value is None:
            self._put(self._scalar(value))
        elif depth >= MAX_DEPTH:
            raise ArgumentError(f"json is nested deeper than {MAX_DEPTH}")
        elif isinstance(value, MessageQueue):
            self._put(self._queue(value))
        elif isinstance(value, Mapping):
            self._object(value, depth + 1)
        elif isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
            self._array(value, depth + 1)
        else:
            raise ArgumentError(f"no json for {type(value).__name__}")

    def _scalar(self, value: Any) -> str:
        if isinstance(value, Enum):
            return self._quote(value.name)
        if value is None or isinstance(value, bool):
            return {None: "null", True: "true", False: "false"}[value]
        return java_double(value) if isinstance(value, float) else str(value)

    def _object(self, members: Mapping[Any, Any], depth: int) -> None:
        text = None if self._standard else _plain_text(members)
        if text is not None:
            self._put(text)
            return
        items = self._in_order(members)
        text = None if self._standard or not items else _plain_table(items)
        if text is not None:
            self._put(text)
            return
        separator = "{"
        for key, value in items:
            if value is not None:
                self._put(separator)
                self._put(self._key(key))
                self.write(value, depth)
                separator = ","
        self._put("{}" if separator == "{" else "}")

    def _array(self, items: Sequence[Any], depth: int) -> None:
        separator = "["
        for item in items:
            self._put(separator)
            self.write(item, depth)
            separator = ","
        self._put("[]" if separator == "[" else "]")

    def _in_order(self, members: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
        # fastjson writes queues as keys in the map's own order.
        if any(isinstance(key, MessageQueue) for key in members):
            return list(members.items())
        return sorted(members.items(), key=lambda member: _rank(member[0]))

    def _key(self, key: Any) -> str:
        if isinstance(key, MessageQueue):
            return self._queue(key) + ":"
        if isinstance(key, int) and not isinstance(key, bool | Enum):
            # `{0:"10.0.0.1:10911"}` is not JSON, but RocketMQ's answer to clients before 4.9.4.
            return f'"{key}":' if self._standard else f"{key}:"
        if isinstance(key, str | Enum):
            return self._quote(key if isinstance(key, str) else key.name) + ":"
        raise ArgumentError(f"no json key for {type(key).__name__}")

    def _queue(self, queue: MessageQueue) -> str:
        name, topic = self._quote(queue.broker_name), self._quote(queue.topic)
        return f'{{"brokerName":{name},"queueId":{queue.queue_id},"topic":{topic}}}'

    def _quote(self, text: str) -> str:
        pattern = _ESCAPED_STANDARD if self._standard else _ESCAPED
        return f'"{pattern.sub(_escape, text)}"' if pattern.search(text) else f'"{text}"'


def java_text(text: str | None) -> str:
    """Returns a string as Java appends it to another string: `None` becomes "null"."""
    return "null" if text is None else text


def java_double(number: float) -> str:
    """Formats a number as Java prints it. NaN and infinity become `null`, as in fastjson."""
    if not math.isfinite(number):
        return "null"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    sign, digits, exponent = _decimal(number)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _decimal(number: float) -> tuple[str, str, int]:
    """Returns the sign of a number, its shortest digits, and the exponent of its first digit."""
    mantissa, _, power = repr(abs(number)).partition("e")
    integer, _, fraction = mantissa.partition(".")
    digits = (integer + fraction).lstrip("0")
    leading = len(integer) - 1 if integer != "0" else len(digits) - len(integer + fraction)
    return "-" if number < 0 else "", digits.rstrip("0"), leading + int(power or 0)


def _rank(key: Any) -> tuple[int, int, str]:
    if isinstance(key, Enum):
        return (1, 0, key.name)
    return (0, key, "") if isinstance(key, int) else (1, 0, str(key))


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SHORT:
        return _SHORT[character]
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[index]:02X}{units[index + 1]:02X}" for index in range(0, len(units), 2))
