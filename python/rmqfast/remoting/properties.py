"""Reads and writes Java's properties: `key=value` lines, in configuration files and requests.

Source: `java.util.Properties`, `MixAll.string2Properties`, `MixAll.properties2String`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rmqfast.errors import ArgumentError, ResponseError
from rmqfast.remoting.response_code import ResponseCode

_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANKS = " \t\f"
_KEY = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def loads(text: str) -> dict[str, str]:
    r"""The properties of a text; of a key that is there twice the last one counts.

    Args:
        text: Lines `key=value`, `key:value` or `key value`; those that begin with `#` or `!` are comments, a backslash
            at the end continues a line.

    Raises:
        ArgumentError: A `\u` without its four hexadecimal digits.

    Example:
        >>> loads("# where\nlistenPort = 9876\nname: a\\u0020\\\n  b\nalone")
        {'listenPort': '9876', 'name': 'a b', 'alone': ''}

    Source: `Properties.load`; of bytes it takes each for a character, these texts are of UTF-8.
    """
    properties: dict[str, str] = {}
    for line in _logical_lines(text):
        match = _KEY.match(line)
        if match:
            properties[_unescaped(match[1])] = _unescaped(match[2])
    return properties


def loads_body(body: bytes) -> dict[str, str]:
    """The properties of a request's body.

    Raises:
        ResponseError: 1, with RocketMQ's remark, which does not say what is wrong.
    """
    try:
        return loads(body.decode("utf-8", "replace"))
    except ArgumentError:
        raise ResponseError(ResponseCode.SYSTEM_ERROR, "string2Properties error") from None


def dumps(properties: Mapping[str, str]) -> str:
    r"""The text of properties: `key=value\n` each, nothing escaped.

    Raises:
        ArgumentError: A text with the end of a line, which would be another property.

    Example:
        >>> dumps({"clusterTest": "false", "listenPort": "9876"})
        'clusterTest=false\nlistenPort=9876\n'

    Source: `MixAll.properties2String`.
    """
    for key, value in properties.items():
        if any(end in key or end in value for end in "\r\n"):
            raise ArgumentError(f"a property is one line: {key[:40]!r} = {value[:40]!r}")
    return "".join(f"{key}={value}\n" for key, value in properties.items())


def _logical_lines(text: str) -> Iterator[str]:
    """The lines that are no comments and not blank, with those that they continue."""
    line, continued = "", False
    for natural in (each.lstrip(_BLANKS) for each in _natural_lines(text)):
        if not line and (not natural or natural[0] in "#!"):
            continued = False
            continue
        # an even number of backslashes is escaped ones, and ends the line
        continued = _ends_open(natural)
        line += natural[:-1] if continued else natural
        if not continued:
            yield line
            line = ""
    if line or continued:
        yield line


def _natural_lines(text: str) -> list[str]:
    lines = _LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


def _ends_open(line: str) -> bool:
    """Whether the last backslash is none that another escapes."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    escaped = match[1]
    if escaped == "u":
        raise ArgumentError(f"properties: expected four hexadecimal digits after \\u, got {match.string[:40]!r}")
    return chr(int(escaped[1:], 16)) if len(escaped) > 1 else _CONTROL.get(escaped, escaped)
