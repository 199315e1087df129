"""Reads and writes Java's properties, which are lines `key=value` in configuration files and requests.

Source: `java.util.Properties`, `MixAll.string2Properties`, `MixAll.properties2String`, `Properties.load`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rmqfast.errors import ArgumentError, ResponseError
from rmqfast.remoting.codes import ResponseCode

_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANKS = " \t\f"
_KEY = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def loads(text: str) -> dict[str, str]:
    r"""Parses lines `key=value`, `key:value` or `key value`. If a key is repeated, the last value counts.

    `#` or `!` starts a comment, a final backslash continues a line. Unlike in Java's `Properties.load`, text is UTF-8.
    `ArgumentError` for an incomplete `\u` escape.
    """
    properties: dict[str, str] = {}
    for line in _logical_lines(text):
        match = _KEY.match(line)
        if match:
            properties[_unescape(match[1])] = _unescape(match[2])
    return properties


def loads_body(body: bytes) -> dict[str, str]:
    """Parses the properties in a request's body. Raises `ResponseError` 1 if they are malformed."""
    try:
        return loads(body.decode("utf-8", "replace"))
    except ArgumentError:
        raise ResponseError(ResponseCode.SYSTEM_ERROR, "string2Properties error") from None


def dumps(properties: Mapping[str, str]) -> str:
    r"""Returns properties as lines `key=value`, without escapes. Raises `ArgumentError` for a line break in them."""
    for key, value in properties.items():
        if any(end in key or end in value for end in "\r\n"):
            raise ArgumentError(f"a property is one line: {key[:40]!r} = {value[:40]!r}")
    return "".join(f"{key}={value}\n" for key, value in properties.items())


def _logical_lines(text: str) -> Iterator[str]:
    """Yields the lines, joined with their continuation lines, without comments and blank lines."""
    line, continued = "", False
    for natural in (each.lstrip(_BLANKS) for each in _natural_lines(text)):
        if not line and (not natural or natural[0] in "#!"):
            continued = False
            continue
        # An even number of backslashes is escaped backslashes, and ends the line.
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
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    escaped = match[1]
    if escaped == "u":
        raise ArgumentError(f"properties: expected four hexadecimal digits after \\u, got {match.string[:40]!r}")
    return chr(int(escaped[1:], 16)) if len(escaped) > 1 else _CONTROL.get(escaped, escaped)
