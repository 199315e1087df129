"""An object of a request's body, read member by member: what is of another type than Java's is answered with 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from rmqfast.errors import RemotingProtocolError, ResponseError
from rmqfast.message import MessageQueue
from rmqfast.remoting.fastjson import decode
from rmqfast.remoting.response_code import ResponseCode

INT = 1 << 31
LONG = 1 << 63
#: Bytes of a body that are looked at: clients send a few hundred, and Python reads 10 MiB in a second.
MAX_BODY_BYTES = 4 << 20


class JsonObject:
    """Members by name; one that is missing or null has its default, as with fastjson.

    Example:
        >>> body = JsonObject.of_body(b'{"group":"g","version":"7","list":[{"flag":true}]}')
        >>> body.text("group"), body.number("version"), [item.flag("flag") for item in body.objects("list", most=9)]
        ('g', 7, [True])
        >>> body.objects("group", most=9)
        Traceback (most recent call last):
            ...
        rmqfast.errors.ResponseError: CODE: 1  DESC: body.group: expected a list, got a text

    Source: `RemotingSerializable.decode`, `TypeUtils` of fastjson.
    """

    def __init__(self, value: Any, path: str = "body") -> None:
        self._path = path
        if not isinstance(value, Mapping):
            self._fail("", "an object", value)
        self._members: Mapping[Any, Any] = value

    @classmethod
    def of_body(cls, body: bytes, *, most: int = MAX_BODY_BYTES) -> JsonObject:
        """The object that a body is.

        Args:
            body: JSON.
            most: Bytes that are read.

        Raises:
            ResponseError: It is none, or larger than `most`.
        """
        if len(body) > most:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"body: expected at most {most} bytes, got {len(body)}")
        try:
            return cls(decode(body))
        except RemotingProtocolError as error:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"body: {error}") from None

    def text(self, name: str) -> str:
        """A text that must be there, and not be empty."""
        text = self.optional_text(name)
        if not text:
            self._fail(name, "a text", text)
        return text

    def optional_text(self, name: str) -> str | None:
        """A text, or nothing."""
        value = self._members.get(name)
        if value is not None and not isinstance(value, str):
            self._fail(name, "a text", value)
        return value

    def number(self, name: str, default: int | None = None) -> int:
        """A whole number of 64 bits, which may stand as a text; without a default it must be there."""
        value = self._members.get(name)
        if value is None and default is not None:
            return default
        return self._whole(name, value, LONG)

    def number_within(self, name: str, low: int, high: int, *, default: int | None = None) -> int:
        """A whole number from `low` to `high`, both included."""
        number = self.number(name, default)
        if not low <= number <= high:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR, f"{self._path}.{name}: expected {low} to {high}, got {number}"
            )
        return number

    def fraction(self, name: str) -> float:
        """A number, 0.0 where it is not there."""
        value = self._members.get(name)
        if isinstance(value, float):
            return value
        return float(0 if value is None else self._whole(name, value, LONG))

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Yes or no; no where it is not there, unless the default is another."""
        value = self._members.get(name)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        if isinstance(value, str) and value.lower() in {"true", "false", ""}:
            return value.lower() == "true"
        return bool(self._whole(name, value, INT))

    def names(self) -> list[str]:
        """The names of its members."""
        return [str(name) for name in self._members]

    def member(self, name: str) -> JsonObject:
        """An object that must be there."""
        return JsonObject(self._members.get(name), f"{self._path}.{name}")

    def object(self, name: str) -> JsonObject | None:
        """An object, or nothing."""
        value = self._members.get(name)
        return None if value is None else JsonObject(value, f"{self._path}.{name}")

    def objects(self, name: str, *, most: int) -> list[JsonObject]:
        """A list of objects, none where it is not there."""
        items = self._list(name, most)
        return [JsonObject(item, f"{self._path}.{name}[{at}]") for at, item in enumerate(items)]

    def texts(self, name: str, *, most: int) -> tuple[str, ...]:
        """A list of texts, none where it is not there."""
        items = self._list(name, most)
        for item in items:
            if not isinstance(item, str):
                self._fail(name, "texts", item)
        return tuple(items)

    def integers(self, name: str, *, most: int) -> tuple[int, ...]:
        """A list of whole numbers of 32 bits, none where it is not there."""
        return tuple(self._whole(name, item, INT) for item in self._list(name, most))

    def texts_by_number(self, *, most: int) -> dict[int, str]:
        """This object as texts by whole numbers, which may stand as texts.

        Raises:
            ResponseError: A member of another type, or more than `most`.
        """
        if len(self._members) > most:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR, f"{self._path}: expected at most {most} members, got {len(self._members)}"
            )
        return {self._whole(str(key), key, LONG): self._text(str(key), value) for key, value in self._members.items()}

    def texts_by_text(self) -> dict[str, str]:
        """This object as texts by texts."""
        return {str(key): self._text(str(key), value) for key, value in self._members.items()}

    def numbers_by_queue(self, name: str, *, most: int) -> dict[MessageQueue, int]:
        """A map of whole numbers by queues, none where it is not there."""
        members = self._members.get(name)
        if members is None:
            return {}
        if not isinstance(members, dict) or len(members) > most:
            self._fail(name, f"an object of at most {most} queues", members)
        if not all(isinstance(queue, MessageQueue) for queue in members):
            self._fail(name, "queues as keys", members)
        return {queue: self._whole(name, value, LONG) for queue, value in members.items()}

    def objects_by_queue(self, name: str, *, most: int) -> dict[MessageQueue, JsonObject]:
        """A map of objects by queues, none where it is not there.

        Example:
            >>> body = b'{"t":{{"brokerName":"b","queueId":3,"topic":"t"}:{"maxOffset":5}}}'
            >>> {queue.queue_id: item.number("maxOffset") for queue, item in
            ...  JsonObject.of_body(body).objects_by_queue("t", most=9).items()}
            {3: 5}
        """
        members = self._members.get(name)
        if members is None:
            return {}
        if not isinstance(members, dict) or len(members) > most:
            self._fail(name, f"an object of at most {most} queues", members)
        if not all(isinstance(queue, MessageQueue) for queue in members):
            self._fail(name, "queues as keys", members)
        return {queue: JsonObject(value, f"{self._path}.{name}") for queue, value in members.items()}

    def queues(self, name: str, *, most: int) -> list[MessageQueue]:
        """A list of queues, none where it is not there."""
        return [item.queue() for item in self.objects(name, most=most)]

    def queue(self) -> MessageQueue:
        """This object as a queue."""
        queue_id = self._whole("queueId", self._members.get("queueId"), INT)
        return MessageQueue(self.text("topic"), self.text("brokerName"), queue_id)

    def _list(self, name: str, most: int) -> list[Any]:
        value = self._members.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self._fail(name, "a list", value)
        if len(value) > most:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR, f"{self._path}.{name}: expected at most {most} items, got {len(value)}"
            )
        return value

    def _text(self, name: str, value: Any) -> str:
        return value if isinstance(value, str) else self._fail(name, "a text", value)

    def _whole(self, name: str, value: Any, limit: int) -> int:
        if isinstance(value, str) and len(value) <= 20 and value.removeprefix("-").isdecimal() and value.isascii():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            self._fail(name, "a whole number", value)
        if not -limit <= value < limit:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"{self._path}.{name}: expected {-limit} to {limit - 1}, got {str(value)[:40]}",
            )
        return value

    def _fail(self, name: str, expected: str, got: Any) -> NoReturn:
        where = f"{self._path}.{name}" if name else self._path
        raise ResponseError(ResponseCode.SYSTEM_ERROR, f"{where}: expected {expected}, got {_kind(got)}")


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    kinds = {str: "a text" if value else "an empty text", bool: "a flag", int: "a whole number", float: "a fraction"}
    return kinds.get(type(value), "a list" if isinstance(value, list) else "an object")
