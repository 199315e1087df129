"""Parses records of the commit log, and reads messages of a queue for the broker itself.

    TOTALSIZE i32, MAGICCODE i32, BODYCRC i32, QUEUEID i32, FLAG i32, QUEUEOFFSET i64, PHYSICALOFFSET i64, SYSFLAG i32,
    BORNTIMESTAMP i64, BORNHOST 8 | 20, STORETIMESTAMP i64, STOREHOST 8 | 20, RECONSUMETIMES i32,
    PREPAREDTRANSACTIONOFFSET i64, BODYLENGTH i32, body, TOPICLENGTH i8 | i16, topic, PROPERTIESLENGTH i16, properties

Source: RocketMQ's `MessageDecoder`, `MessageExt`, `CommitLog`, `HashMap`, `TransactionalMessageBridge`,
`DefaultMessageStore`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple

from rmqfast.errors import CorruptError
from rmqfast.logs import logger_of
from rmqfast.message import Message
from rmqfast.remoting.hash_map import hash_order
from rmqfast.remoting.rate_limit import limited
from rmqfast.store import LiveStore

_log = limited(logger_of(__name__))
_NAME_END = "\x01"
_PROPERTY_END = "\x02"


def parse_properties(text: str) -> dict[str, str]:
    r"""Parses a property string. Empty names and values are skipped. If a name is repeated, the last value counts."""
    properties = {}
    for part in text.split(_PROPERTY_END):
        name, _, value = part.partition(_NAME_END)
        if name and value:
            properties[name] = value
    return properties


def write_properties(properties: Mapping[str, str]) -> str:
    r"""Returns the property string, with properties in the order of Java's map."""
    return _PROPERTY_END.join(f"{name}{_NAME_END}{value}" for name, value in in_map_order(properties).items())


def in_map_order(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns the properties in the order of a `java.util.HashMap` to which they were added one by one.

    Example:
        >>> list(in_map_order(dict.fromkeys(["zeta", "TAGS", "KEYS", "alpha", "UNIQ_KEY"], "")))
        ['zeta', 'KEYS', 'alpha', 'UNIQ_KEY', 'TAGS']
    """
    # RocketMQ writes a HashMap, and records shall equal a real broker's byte by byte.
    return {name: properties[name] for name in _names_in_order(tuple(properties))}


@lru_cache(maxsize=256)
def _names_in_order(names: tuple[str, ...]) -> tuple[str, ...]:
    """Returns names in the order of Java's map. Cached, because similar messages have the same property names."""
    return tuple(hash_order(names))


#: Bits of the system flag (`MessageSysFlag`).
COMPRESSED = 0x1
MULTI_TAGS = 0x2
TRANSACTION_MASK = 0xC
TRANSACTION_COMMIT = 0x8
TRANSACTION_ROLLBACK = 0xC
_BORN_HOST_V6 = 0x10
_STORE_HOST_V6 = 0x20

#: `MESSAGE_MAGIC_CODE` and, since 5.x, `_V2` for topics longer than 127 bytes.
_MAGIC = 0xDAA320A7
_MAGIC_OF_LONG_TOPICS = 0xDAA320AB
_HEAD = struct.Struct(">iIIiiqqiq")
_TIMES = struct.Struct(">iqi")
_LONG = struct.Struct(">q")
_SHORT = struct.Struct(">h")
_BYTE = struct.Struct(">b")
_PORT = struct.Struct(">i")


class StoredMessage(NamedTuple):
    """A stored message. Its body may be compressed.

    Attributes:
        topic: Topic in the store, such as `SCHEDULE_TOPIC_XXXX` for a delayed message.
        queue_offset: Offset in the queue.
        body: Body as stored, compressed if `sys_flag` says so.
        body_crc: CRC32 of the stored body, without the sign bit; not verified.
        sys_flag: Bits for compression, transaction type and IPv6 hosts.
        born_host: Address of the producer: `ip:port` or `[ip6]:port`.
        reconsume_times: Number of failed attempts to consume the message.
        prepared_transaction_offset: Physical offset of the half message, or 0.

    Example:
        >>> import rmqfast
        >>> log = getfixture("golden_store")("delaytx-4.9.4") / "commitlog" / f"{0:020}"
        >>> data = log.read_bytes()
        >>> message = StoredMessage.parse(data[: int.from_bytes(data[:4])])
        >>> message.topic, message.properties["REAL_TOPIC"], message.offset_msg_id
        ('SCHEDULE_TOPIC_XXXX', 'fx_delay', '7F0000010000528A0000000000000000')
    """

    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    body: bytes
    body_crc: int
    properties: Mapping[str, str]
    flag: int
    sys_flag: int
    born_timestamp: int
    born_host: str
    store_timestamp: int
    store_host: str
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0

    @classmethod
    def parse(cls, record: bytes) -> StoredMessage:
        """Parses a record. Raises `CorruptError` if the bytes are not exactly one record."""
        try:
            return _parse(record)
        except (struct.error, UnicodeDecodeError) as error:
            raise _corrupt(f"a whole record, got {len(record)} bytes: {error}") from None

    @property
    def tags(self) -> str | None:
        return self.properties.get("TAGS")

    @property
    def uniq_key(self) -> str | None:
        return self.properties.get("UNIQ_KEY")

    @property
    def offset_msg_id(self) -> str:
        """The id that the broker gives: its address and the physical offset, in hex."""
        return (_host_bytes(self.store_host) + _LONG.pack(self.physical_offset)).hex().upper()

    def encode(self) -> bytes:
        """Returns the message as a record, with properties in the order of Java's map."""
        topic = self.topic.encode()
        properties = write_properties(self.properties).encode()
        hosts = _host_bytes(self.born_host), _host_bytes(self.store_host)
        tail = _TIMES.pack(self.reconsume_times, self.prepared_transaction_offset, len(self.body)) + self.body
        # The length is a signed byte in Java, so the first format ends at 127.
        tail += _SHORT.pack(len(topic)) if len(topic) > 127 else bytes([len(topic)])
        tail += topic + _SHORT.pack(len(properties)) + properties
        body = hosts[0] + _LONG.pack(self.store_timestamp) + hosts[1] + tail
        magic = _MAGIC_OF_LONG_TOPICS if len(topic) > 127 else _MAGIC
        numbers = (self.body_crc, self.queue_id, self.flag, self.queue_offset, self.physical_offset, self.sys_flag)
        return _HEAD.pack(_HEAD.size + len(body), magic, *numbers, self.born_timestamp) + body

    def message(self, topic: str, queue_id: int, properties: Mapping[str, str], *, flag: int | None = None) -> Message:
        """Returns a message to store again: this body and born time, with the given topic, queue and properties."""
        return Message(
            topic,
            self.body,
            properties=properties,
            queue_id=queue_id,
            flag=self.flag if flag is None else flag,
            born_timestamp=self.born_timestamp,
        )


def _parse(record: bytes) -> StoredMessage:
    size, magic, crc, queue_id, flag, queue_offset, physical_offset, sys_flag, born = _HEAD.unpack_from(record)
    if magic not in (_MAGIC, _MAGIC_OF_LONG_TOPICS) or size != len(record):
        raise _corrupt(f"magic {_MAGIC:#x} and {len(record)} bytes, got {magic:#x} and {size}")
    end_of_born = _HEAD.size + (20 if sys_flag & _BORN_HOST_V6 else 8)
    end_of_store = end_of_born + 8 + (20 if sys_flag & _STORE_HOST_V6 else 8)
    (store_timestamp,) = _LONG.unpack_from(record, end_of_born)
    reconsume_times, prepared, length = _TIMES.unpack_from(record, end_of_store)
    body, position = _part(record, end_of_store + _TIMES.size, length)
    topic_length = _SHORT if magic == _MAGIC_OF_LONG_TOPICS else _BYTE
    topic, position = _part(record, position + topic_length.size, topic_length.unpack_from(record, position)[0])
    properties, position = _part(record, position + 2, _SHORT.unpack_from(record, position)[0])
    # Smaller lengths would hide bytes from code that copies the record field by field.
    if position != size:
        raise _corrupt(f"parts of {size} bytes, got {position}")
    return StoredMessage(
        topic.decode(),
        queue_id,
        queue_offset,
        physical_offset,
        body,
        crc,
        parse_properties(properties.decode(errors="replace")),
        flag,
        sys_flag,
        born,
        _host_text(record[_HEAD.size : end_of_born]),
        store_timestamp,
        _host_text(record[end_of_born + 8 : end_of_store]),
        reconsume_times,
        prepared,
    )


def _part(record: bytes, start: int, length: int) -> tuple[bytes, int]:
    if length < 0 or start + length > len(record):
        raise _corrupt(f"at byte {start} a part of at most {len(record) - start} bytes, got {length}")
    return record[start : start + length], start + length


@lru_cache(maxsize=4096)
def _host_text(host: bytes) -> str:
    # 4 or 16 bytes of the address, then a port of 4 bytes.
    (port,) = _PORT.unpack(host[-4:])
    if len(host) > 8:
        return f"[{IPv6Address(host[:-4])}]:{port}"
    return f"{IPv4Address(host[:-4])}:{port}"


def _host_bytes(host: str) -> bytes:
    ip, _, port = host.rpartition(":")
    address: IPv4Address | IPv6Address = ip_address(ip.strip("[]"))
    return address.packed + _PORT.pack(int(port))


def _corrupt(expected: str) -> CorruptError:
    return CorruptError(f"record: expected {expected}")


@dataclass(frozen=True, slots=True)
class QueueRead:
    """Messages that were read from a queue.

    `next_offset` is the queue offset to continue at. `is_at_end` means that there are no messages yet; otherwise an
    empty result means that the offset lies outside of the queue.
    """

    messages: list[StoredMessage]
    next_offset: int
    is_at_end: bool = False


def read_queue(live: LiveStore, topic: str, queue_id: int, offset: int, count: int) -> QueueRead:
    """Returns up to `count` messages of a queue, beginning at an offset. Skips messages that cannot be read."""
    low, high = live.queue_bounds(topic, queue_id)
    # An empty queue has the bounds 0, 0. It counts as "no messages yet", not as "offset outside".
    if high in {0, offset}:
        return QueueRead([], offset, is_at_end=True)
    if not low <= offset < high:
        return QueueRead([], low if offset < low else high)
    messages: list[StoredMessage] = []
    for position in range(offset, high):
        if messages and position - offset >= count:
            return QueueRead(messages, position)
        unit = live.unit(topic, queue_id, position)
        message = None if unit is None else message_at(live, unit[0])
        if message is not None:
            messages.append(message)
    return QueueRead(messages, high)


def message_at(live: LiveStore, physical_offset: int) -> StoredMessage | None:
    """Returns the message at a physical offset. None if no valid record begins there."""
    if physical_offset < 0:
        return None
    record = live.record(physical_offset)
    try:
        message = None if record is None else StoredMessage.parse(record)
    except CorruptError as error:
        _log.warning("no message at physical offset %d: %s", physical_offset, error)
        return None
    # A body may contain bytes that look like a record, but with another offset.
    return message if message is not None and message.physical_offset == physical_offset else None
