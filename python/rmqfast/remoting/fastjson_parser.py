"""Reads fastjson's dialect where the standard parser cannot: single quotes; bare words, numbers and objects as keys.

Source: `DefaultJSONParser` of fastjson 1.2.69.
"""

from __future__ import annotations

import math
import re
from json import JSONDecoder
from typing import Any, NoReturn

from rmqfast.errors import RemotingProtocolError
from rmqfast.message import MessageQueue

#: How many objects and arrays may stand in one another.
MAX_DEPTH = 64

_BLANK = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"(-?[0-9]{1,4000})(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![0-9.])")
_BARE_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_SINGLE_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_IN_QUOTES = re.compile(r'\\.|"', re.DOTALL)
_INTEGER = re.compile(r"-?[0-9]{1,19}(?![0-9.eE])")
_TEXT = JSONDecoder(strict=False)  # ends of lines may stand in a text
_WORDS = {"true": True, "false": False, "null": None}
_WORD = re.compile("true|false|null")
_QUEUE = {"topic", "brokerName", "queueId"}


class Parser:
    """One text, read once from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def document(self) -> Any:
        """The value that is the whole text.

        Raises:
            RemotingProtocolError: It is none; says at which character.
        """
        value = self._value(0)
        if self._peek():
            self._fail("the end")
        return value

    def _value(self, depth: int) -> Any:
        opening = self._peek()
        if opening in {"{", "["}:
            if depth >= MAX_DEPTH:
                self._fail(f"no more than {MAX_DEPTH} objects in one another")
            return self._object(depth + 1) if opening == "{" else self._array(depth + 1)
        if opening in {'"', "'"}:
            return self._string()
        return self._scalar()

    def _object(self, depth: int) -> dict[Any, Any]:
        self._at += 1
        members: dict[Any, Any] = {}
        while self._peek() != "}":
            key = self._key(depth)
            self._expect(":")
            members[key] = self._value(depth)
            if self._peek() != "}":
                self._expect(",")
        self._at += 1
        return members

    def _array(self, depth: int) -> list[Any]:
        self._at += 1
        items: list[Any] = []
        while self._peek() != "]":
            items.append(self._value(depth))
            if self._peek() != "]":
                self._expect(",")
        self._at += 1
        return items

    def _key(self, depth: int) -> str | int | MessageQueue:
        opening = self._peek()
        if opening in {'"', "'"}:
            return self._text_key(self._string())
        if opening == "{":
            start = self._at
            queue = _as_queue(self._value(depth))
            return self._fail("a queue as key", start) if queue is None else queue
        if match := _BARE_KEY.match(self._text, self._at):
            self._at = match.end()
            return match[0]
        match = _INTEGER.match(self._text, self._at)
        if match is None:
            self._fail("a key")
        self._at = match.end()
        return int(match[0])

    def _text_key(self, key: str) -> str | MessageQueue:
        """A text that holds a queue is a queue: RocketMQ reads both."""
        if key[:1] != "{":
            return key
        try:
            return _as_queue(Parser(key).document()) or key
        except RemotingProtocolError:
            return key

    def _string(self) -> str:
        if match := _SINGLE_QUOTED.match(self._text, self._at):
            self._at = match.end()
            return str(Parser(f'"{_IN_QUOTES.sub(_in_double_quotes, match[1])}"').document())
        try:
            text, self._at = _TEXT.raw_decode(self._text, self._at)
        except ValueError:
            self._fail("a text that ends")
        return _without_halves(text)

    def _scalar(self) -> Any:
        if match := _WORD.match(self._text, self._at):
            self._at = match.end()
            return _WORDS[match[0]]
        match = _NUMBER.match(self._text, self._at)
        if match is None:
            self._fail("a value")
        number = float(match[0]) if match[2] or match[3] else int(match[1])
        if isinstance(number, float) and not math.isfinite(number):
            self._fail("a number that a double holds")
        self._at = match.end()
        return number

    def _peek(self) -> str:
        """The next character that is not blank; empty at the end."""
        match = _BLANK.match(self._text, self._at)
        self._at = match.end() if match else self._at
        return self._text[self._at : self._at + 1]

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            self._fail(repr(character))
        self._at += 1

    def _fail(self, expected: str, at: int | None = None) -> NoReturn:
        at = self._at if at is None else at
        got = repr(self._text[at : at + 20]) if at < len(self._text) else "the end"
        raise RemotingProtocolError(f"no json at character {at}: expected {expected}, got {got}")


def _in_double_quotes(match: re.Match[str]) -> str:
    return {"\\'": "'", '"': '\\"'}.get(match[0], match[0])


def _as_queue(value: Any) -> MessageQueue | None:
    if not isinstance(value, dict) or value.keys() != _QUEUE:
        return None
    topic, broker_name, queue_id = value["topic"], value["brokerName"], value["queueId"]
    if not (isinstance(topic, str) and isinstance(broker_name, str) and type(queue_id) is int):
        return None
    return MessageQueue(topic, broker_name, queue_id)


def _without_halves(text: str) -> str:
    """Halves of characters as Java reads them: two make one, one alone is a question mark once it is sent."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
