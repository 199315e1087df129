"""Parses the body of a registration: the broker's topics, their version, and its filter servers.

Source: RocketMQ's `RegisterBrokerBody`, `TopicConfigSerializeWrapper`, `DefaultRequestProcessor`.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rmqfast.errors import RemotingProtocolError
from rmqfast.nameserver.names import MAX_FILTER_SERVERS, MAX_REGISTRATION, is_name
from rmqfast.remoting import fastjson
from rmqfast.store.config import DataVersion, TopicConfig

_INT = 4
_COMPRESSED_TOPIC_FIELDS = 5


@dataclass(frozen=True, slots=True)
class RegisterBody:
    """The body of a registration.

    `topics` are all topics of the broker, or only the changed ones. `filter_servers` is `None` if the body does not
    mention them.
    """

    data_version: DataVersion
    topics: tuple[TopicConfig, ...] = ()
    filter_servers: tuple[str, ...] | None = ()

    @classmethod
    def of(cls, body: bytes, *, compressed: bool, bare: bool, now: int) -> RegisterBody:
        """Parses the body.

        Args:
            body: The body as received; an empty one has no topics and version 0.
            compressed: Whether the header says that the body is compressed.
            bare: Whether the client predates filter servers and sends only topics and version.
            now: Milliseconds since 1970, used as version if the body has none.

        Raises:
            RemotingProtocolError: The body is malformed, or inflates to more than 16 MiB.
        """
        if not body:
            return cls(DataVersion(), (), None if bare else ())
        # Clients before 3.0.11 have no compressed form.
        if compressed and not bare:
            return _parse_compressed(body)
        members = _mapping(fastjson.decode(body), "the body")
        if bare:
            return _wrapper(members, None, now)
        wrapper = _mapping(members.get("topicConfigSerializeWrapper") or {}, "topicConfigSerializeWrapper")
        return _wrapper(wrapper, _filter_servers(members.get("filterServerList") or []), now)


def _wrapper(members: Mapping[str, Any], filter_servers: tuple[str, ...] | None, now: int) -> RegisterBody:
    version = members.get("dataVersion")
    table = _mapping(members.get("topicConfigTable") or {}, "topicConfigTable")
    topics = [_topic(name, fields) for name, fields in table.items() if fields is not None]
    return RegisterBody(
        DataVersion(timestamp=now) if version is None else data_version(version, now), tuple(topics), filter_servers
    )


def data_version(value: Any, now: int) -> DataVersion:
    members = _mapping(value, "dataVersion")
    timestamp, counter = members.get("timestamp", now), members.get("counter", 0)
    return DataVersion(timestamp=_number(timestamp, "timestamp", 64), counter=_number(counter, "counter", 64))


def _topic(name: Any, fields: Any) -> TopicConfig:
    members = _mapping(fields, "a topic")
    topic_name = members.get("topicName")
    return TopicConfig(
        topic_name=str(name if topic_name is None else topic_name),
        read_queue_nums=_number(members.get("readQueueNums", 16), "readQueueNums"),
        write_queue_nums=_number(members.get("writeQueueNums", 16), "writeQueueNums"),
        perm=_number(members.get("perm", 6), "perm"),
        topic_sys_flag=_number(members.get("topicSysFlag", 0), "topicSysFlag"),
        order=members.get("order") is True,
    )


def _parse_compressed(body: bytes) -> RegisterBody:
    """Parses the compressed form of the body. It contains no `topicSysFlag` and no `order`."""
    cursor = _Cursor(_inflate(body))
    version = data_version(fastjson.decode(cursor.block()), 0)
    topics = [_topic_line(cursor.block()) for _ in range(cursor.count())]
    return RegisterBody(version, tuple(topics), _filter_servers(fastjson.decode(cursor.block()) or []))


def _topic_line(line: bytes) -> TopicConfig:
    fields = line.decode("utf-8", "replace").split(" ")
    if len(fields) < _COMPRESSED_TOPIC_FIELDS:
        raise RemotingProtocolError(f"a topic has {_COMPRESSED_TOPIC_FIELDS} fields, got {len(fields)}")
    name, read_queues, write_queues, perm = fields[:4]
    try:
        numbers = [int(number) for number in (read_queues, write_queues, perm)]
    except ValueError:
        raise RemotingProtocolError(f"a topic with a number that is none: {line[:60]!r}") from None
    read_queue_nums, write_queue_nums, bits = (_number(number, "a topic") for number in numbers)
    return TopicConfig(topic_name=name, read_queue_nums=read_queue_nums, write_queue_nums=write_queue_nums, perm=bits)


def _inflate(body: bytes) -> bytes:
    inflater = zlib.decompressobj()
    try:
        # Bounded while inflating, since a few kilobytes may become gigabytes.
        data = inflater.decompress(body, MAX_REGISTRATION)
    except zlib.error as error:
        raise RemotingProtocolError(f"a registration that does not inflate: {error}") from None
    if inflater.unconsumed_tail:
        raise RemotingProtocolError(f"a registration inflates to more than {MAX_REGISTRATION} bytes")
    return data


class _Cursor:
    """Reads blocks of bytes, each of which follows its length."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def count(self) -> int:
        number = int.from_bytes(self._take(_INT), "big", signed=True)
        # Each block takes at least the four bytes of its length.
        if not 0 <= number <= (len(self._data) - self._at) // _INT:
            raise RemotingProtocolError(f"a registration at byte {self._at}: {number} blocks do not fit")
        return number

    def block(self) -> bytes:
        return self._take(int.from_bytes(self._take(_INT), "big", signed=True))

    def _take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._data) - self._at:
            rest = len(self._data) - self._at
            raise RemotingProtocolError(f"a registration at byte {self._at}: expected {size} bytes, got {rest}")
        self._at += size
        return self._data[self._at - size : self._at]


def _mapping(value: Any, name: str) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise RemotingProtocolError(f"{name} is no object")
    return value


def _number(value: Any, name: str, bits: int = 32) -> int:
    # The exact type excludes bool, which is a subclass of int.
    if type(value) is not int or not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise RemotingProtocolError(f"{name} is no number: {str(value)[:40]!r}")
    return value


def _filter_servers(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MAX_FILTER_SERVERS:
        raise RemotingProtocolError(f"expected a list of at most {MAX_FILTER_SERVERS} filter servers")
    if not all(isinstance(address, str) and is_name(address) for address in value):
        raise RemotingProtocolError("a filter server whose address is none")
    return tuple(value)
