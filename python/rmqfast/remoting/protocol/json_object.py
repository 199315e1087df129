"""Reads a JSON object field by field, and is as lenient as fastjson.

Clients in other languages write enums as ordinals, numbers as strings and strings as numbers. Values that fastjson
refuses raise `ResponseError` 1.

Source: `TypeUtils`, `EnumDeserializer`, `JavaBeanDeserializer.smartMatch`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from rmqfast.errors import RemotingProtocolError, ResponseError
from rmqfast.message import MessageQueue
from rmqfast.remoting.codes import ResponseCode
from rmqfast.remoting.fastjson import decode, encode

INT = 1 << 31
LONG = 1 << 63
#: Limit of a body in bytes: clients send a few hundred bytes, and Python parses only 10 MiB per second.
MAX_BODY_BYTES = 4 << 20

_INTEGER = re.compile("[+-]?[0-9]{1,20}")
_INT_ONLY = {int}
#: Strings that fastjson reads as null if a number or a flag is expected.
_NOTHING = {"", "null", "NULL"}
_FLAGS = {"true": True, "1": True, "Y": True, "T": True, "false": False, "0": False, "N": False, "F": False}


class JsonObject:
    """The fields of a JSON object. Names ignore case, `_` and `-`. A missing field or null has the default."""

    def __init__(self, value: Any, path: str = "body") -> None:
        self._path = path
        if not isinstance(value, Mapping):
            self._fail("", "an object", value)
        self._members: Mapping[Any, Any] = value
        self._by_plain_name: dict[str, Any] | None = None

    @classmethod
    def of_body(cls, body: bytes, *, most: int = MAX_BODY_BYTES) -> JsonObject:
        """Parses a body. Raises `ResponseError` if it is not an object, or larger than `most` bytes."""
        if len(body) > most:
            raise _refusal(f"body: expected at most {most} bytes, got {len(body)}")
        try:
            return cls(decode(body))
        except RemotingProtocolError as error:
            raise _refusal(f"body: {error}") from None

    def text(self, name: str) -> str:
        """Returns a string that is not empty. Raises `ResponseError` if there is none."""
        text = self.optional_text(name)
        if not text:
            self._fail(name, "a text", text)
        return text

    def optional_text(self, name: str) -> str | None:
        """Returns a string. Other values are returned as their JSON source, null as `None`."""
        value = self._value(name)
        return None if value is None else _as_text(value)

    def word(self, name: str, words: Sequence[str]) -> str | None:
        """Returns the name of an enum constant, given as name or ordinal. `None` for a name of later releases.

        `words` are the enum's words by ordinal. `ResponseError` if the value is neither a string nor an ordinal.
        """
        value = self._value(name)
        if type(value) is int and 0 <= value < len(words):
            return words[value]
        if value is not None and not isinstance(value, str):
            self._fail(name, f"one of {', '.join(words)}, or its ordinal", value)
        return next((word for word in words if value is not None and word.lower() == value.lower()), None)

    def number(self, name: str, default: int | None = None) -> int:
        """Returns an integer of 64 bits, also from a string. The field is required unless there is a default."""
        number = self._integer(name, self._value(name), LONG)
        if number is not None:
            return number
        return self._fail(name, "a whole number", None) if default is None else default

    def numbers(self, names: Sequence[str]) -> tuple[int, ...]:
        """Returns several integers of 64 bits, 0 for one that is missing."""
        values: tuple[Any, ...] = tuple(map(self._members.get, names))
        # The usual and fast case.
        if _INT_ONLY.issuperset(map(type, values)) and min(values) >= -LONG and max(values) < LONG:
            return values
        return tuple(self.number(name, 0) for name in names)

    def number_within(self, name: str, low: int, high: int, *, default: int | None = None) -> int:
        """Returns an integer from `low` to `high`, both included."""
        is_int = -INT <= low <= high < INT
        number = self._integer(name, self._value(name), INT if is_int else LONG)
        if number is None:
            number = self._fail(name, "a whole number", None) if default is None else default
        if not low <= number <= high:
            raise _refusal(f"{self._path}.{name}: expected {low} to {high}, got {number}")
        return number

    def fraction(self, name: str) -> float:
        value = self._value(name)
        return value if isinstance(value, float) else float(self._integer(name, value, LONG) or 0)

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Returns a boolean. Of numbers, only 1 means true."""
        value = self._value(name)
        if value is None:
            # fastjson's smart match accepts `isUnitMode` for `unitMode`.
            value = self._value(f"is_{name}")
        if isinstance(value, bool):
            return value
        if isinstance(value, str):
            return default if value in _NOTHING else self._flag_of_text(name, value)
        if value is not None and not isinstance(value, int | float):
            self._fail(name, "true or false", value)
        number = self._integer(name, value, INT)
        return default if number is None else number == 1

    def names(self) -> list[str]:
        return [str(name) for name in self._members]

    def member(self, name: str) -> JsonObject:
        return JsonObject(self._value(name), f"{self._path}.{name}")

    def object(self, name: str) -> JsonObject | None:
        """Returns an optional object. null, "" and [] count as missing."""
        value = self._value(name)
        return None if value in (None, "", []) else JsonObject(value, f"{self._path}.{name}")

    def objects(self, name: str, *, most: int) -> list[JsonObject]:
        """Returns a list of objects. A single object counts as a list of one."""
        value = self._value(name)
        items = [value] if isinstance(value, Mapping) else self._list(name, most)
        return [JsonObject(item, f"{self._path}.{name}[{index}]") for index, item in enumerate(items)]

    def texts(self, name: str, *, most: int) -> tuple[str, ...]:
        return tuple(_as_text(item) for item in self._list(name, most) if item is not None)

    def integers(self, name: str, *, most: int) -> tuple[int, ...]:
        """Returns a list of integers of 32 bits, without nulls."""
        numbers = (self._integer(name, item, INT) for item in self._list(name, most))
        return tuple(number for number in numbers if number is not None)

    def texts_by_number(self, *, most: int) -> dict[int, str]:
        """Returns this object as a map from integers to strings. Raises `ResponseError` for over `most` entries."""
        self._check_count(most)
        return {
            self._required_number(str(key), key): self._text(str(key), value) for key, value in self._members.items()
        }

    def numbers_by_number(self, *, most: int) -> dict[int, int]:
        """Returns this object as a map from integers to integers. Raises `ResponseError` for over `most` entries."""
        self._check_count(most)
        return {
            self._required_number(str(key), key): self._required_number(str(key), value)
            for key, value in self._members.items()
        }

    def texts_by_text(self) -> dict[str, str]:
        return {str(key): self._text(str(key), value) for key, value in self._members.items()}

    def numbers_by_queue(self, name: str, *, most: int) -> dict[MessageQueue, int]:
        return {queue: self._required_number(name, value) for queue, value in self._by_queue(name, most).items()}

    def objects_by_queue(self, name: str, *, most: int) -> dict[MessageQueue, JsonObject]:
        """Returns a field, an object whose names are queues, as a map from queues to JSON objects."""
        return {queue: JsonObject(value, f"{self._path}.{name}") for queue, value in self._by_queue(name, most).items()}

    def queues(self, name: str, *, most: int) -> list[MessageQueue]:
        return [item.queue() for item in self.objects(name, most=most)]

    def queue(self) -> MessageQueue:
        """Returns this object as a queue. A missing queue id means 0."""
        queue_id = self._integer("queueId", self._value("queueId"), INT) or 0
        return MessageQueue(self.text("topic"), self.text("brokerName"), queue_id)

    def _value(self, name: str) -> Any:
        """Returns a field. Its name is compared without case, `_` and `-`."""
        value = self._members.get(name)
        # The exact name is the usual and fast case.
        if value is not None or name in self._members:
            return value
        if self._by_plain_name is None:
            self._by_plain_name = {_plain(key): item for key, item in self._members.items() if isinstance(key, str)}
        return self._by_plain_name.get(_plain(name))

    def _check_count(self, most: int) -> None:
        if len(self._members) > most:
            raise _refusal(f"{self._path}: expected at most {most} members, got {len(self._members)}")

    def _by_queue(self, name: str, most: int) -> dict[MessageQueue, Any]:
        members = self._value(name)
        if members is None:
            return {}
        if not isinstance(members, dict) or len(members) > most:
            self._fail(name, f"an object of at most {most} queues", members)
        if not all(isinstance(queue, MessageQueue) for queue in members):
            self._fail(name, "queues as keys", members)
        return members

    def _flag_of_text(self, name: str, text: str) -> bool:
        # fastjson accepts the letters Y, T, N and F only in upper case.
        flag = _FLAGS.get(text if len(text) == 1 else text.lower())
        return self._fail(name, "true or false", text) if flag is None else flag

    def _list(self, name: str, most: int) -> list[Any]:
        value = self._value(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self._fail(name, "a list", value)
        if len(value) > most:
            raise _refusal(f"{self._path}.{name}: expected at most {most} items, got {len(value)}")
        return value

    def _text(self, name: str, value: Any) -> str:
        return value if isinstance(value, str) else self._fail(name, "a text", value)

    def _required_number(self, name: str, value: Any) -> int:
        number = self._integer(name, value, LONG)
        return self._fail(name, "a whole number", value) if number is None else number

    def _integer(self, name: str, value: Any, limit: int) -> int | None:
        """Converts a value to an integer as fastjson does: fractions are cut off, and strings may contain commas."""
        # The usual and fast case.
        if type(value) is int and -limit <= value < limit:
            return value
        if isinstance(value, str):
            digits = value.replace(",", "")
            value = None if value in _NOTHING else int(digits) if _INTEGER.fullmatch(digits) else value
        if value is None:
            return None
        # fastjson converts flags to int, but not to long.
        if not isinstance(value, int | float) or (isinstance(value, bool) and limit == LONG):
            self._fail(name, "a whole number", value)
        # `TypeUtils.castToLong` truncates fractions, too.
        number = int(value)
        if not -limit <= number < limit:
            raise _refusal(f"{self._path}.{name}: expected {-limit} to {limit - 1}, got {str(number)[:40]}")
        return number

    def _fail(self, name: str, expected: str, value: Any) -> NoReturn:
        path = f"{self._path}.{name}" if name else self._path
        raise _refusal(f"{path}: expected {expected}, got {_kind(value)}")


def _refusal(remark: str) -> ResponseError:
    return ResponseError(ResponseCode.SYSTEM_ERROR, remark)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else encode(value).decode()


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    kinds = {str: "a text" if value else "an empty text", bool: "a flag", int: "a whole number", float: "a fraction"}
    return kinds.get(type(value), "a list" if isinstance(value, list) else "an object")
