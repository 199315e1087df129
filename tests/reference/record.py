"""A record of the commit log, V1 and V2, and the blank record that ends a file.

    TOTALSIZE i32, MAGICCODE i32, BODYCRC i32, QUEUEID i32, FLAG i32, QUEUEOFFSET i64, PHYSICALOFFSET i64, SYSFLAG i32,
    BORNTIMESTAMP i64, BORNHOST 8 | 20, STORETIMESTAMP i64, STOREHOST 8 | 20, RECONSUMETIMES i32,
    PREPAREDTRANSACTIONOFFSET i64, BODYLEN i32 + body, TOPICLEN i8 | i16 + topic, PROPLEN i16 + properties

Source: CommitLog.MessageExtEncoder.encode, CommitLog.checkMessageAndReturnSize; MessageVersion (5.x).
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, replace

from . import compression, message_id, properties
from .host import Host

MAGIC_V1 = 0xDAA320A7
MAGIC_V2 = 0xDAA320AB
MAGIC_BLANK = 0xCBD43194
MIN_BLANK_BYTES = 8
MAX_V1_TOPIC_BYTES = 127

TRANSACTION_MASK = 0xC
TRANSACTION_PREPARED = 0x4
TRANSACTION_COMMIT = 0x8
TRANSACTION_ROLLBACK = 0xC
BORN_HOST_V6 = 0x10
STORE_HOST_V6 = 0x20

LOOPBACK = Host("127.0.0.1", 10911)


class Malformed(ValueError):
    """Bytes that are no record."""


@dataclass(frozen=True)
class Blank:
    """The end of a file; only its first 8 bytes are written."""

    physical_offset: int
    store_size: int


@dataclass(frozen=True)
class Record:
    """A record as it stands in the file: `body` as stored, `property_bytes` as stored."""

    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    body: bytes
    property_bytes: bytes = b""
    flag: int = 0
    sys_flag: int = 0
    born_timestamp: int = 0
    born_host: Host = LOOPBACK
    store_timestamp: int = 0
    store_host: Host = LOOPBACK
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    v2: bool = False
    body_crc: int = 0
    store_size: int = 0

    @property
    def properties(self) -> dict[str, str]:
        return properties.decode(self.property_bytes)

    @property
    def tags(self) -> str | None:
        return self.properties.get(properties.TAGS)

    @property
    def keys(self) -> str | None:
        return self.properties.get(properties.KEYS)

    @property
    def plain_body(self) -> bytes:
        return compression.decompress(self.body, self.sys_flag)

    @property
    def offset_msg_id(self) -> str:
        return message_id.encode(self.store_host, self.physical_offset)

    @property
    def msg_id(self) -> str:
        return self.properties.get(properties.UNIQ_KEY) or self.offset_msg_id

    @property
    def has_queue_place(self) -> bool:
        """Prepared and rolled-back messages have queueOffset 0 and no unit in a consume queue."""
        return self.sys_flag & TRANSACTION_MASK not in (TRANSACTION_PREPARED, TRANSACTION_ROLLBACK)


def body_crc(stored_body: bytes) -> int:
    return zlib.crc32(stored_body) & 0x7FFFFFFF


def complete(record: Record, property_crc: bool = False) -> Record:
    """`record` with all that follows from its other fields: CRCs, size, the IPv6 bits of sysFlag."""
    sys_flag = record.sys_flag & ~(BORN_HOST_V6 | STORE_HOST_V6)
    sys_flag |= BORN_HOST_V6 * record.born_host.is_v6 | STORE_HOST_V6 * record.store_host.is_v6
    record = replace(record, sys_flag=sys_flag, body_crc=body_crc(record.body))
    if not property_crc:
        return replace(record, store_size=len(encode(record)))
    props = record.property_bytes
    if props and not props.endswith(b"\x02"):
        props += b"\x02"
    reserved = replace(record, property_bytes=props + bytes(properties.CRC_RESERVED_BYTES))
    reserved = replace(reserved, store_size=len(encode(reserved)))
    checked = encode(reserved)[: -properties.CRC_RESERVED_BYTES]
    return replace(reserved, property_bytes=props + properties.encode_crc(checked))


def encode(record: Record) -> bytes:
    """The bytes of `record`, each field as it says: a wrong size or CRC is written as well."""
    topic, props = record.topic.encode(), record.property_bytes
    magic = MAGIC_V2 if record.v2 else MAGIC_V1
    return b"".join(
        (
            struct.pack(">iIiii", record.store_size, magic, record.body_crc, record.queue_id, record.flag),
            struct.pack(">qqiq", record.queue_offset, record.physical_offset, record.sys_flag, record.born_timestamp),
            record.born_host.encode(),
            struct.pack(">q", record.store_timestamp),
            record.store_host.encode(),
            struct.pack(">iqi", record.reconsume_times, record.prepared_transaction_offset, len(record.body)),
            record.body,
            struct.pack(">h" if record.v2 else ">b", len(topic)),
            topic,
            struct.pack(">h", len(props)),
            props,
        )
    )


def encode_blank(size: int) -> bytes:
    return struct.pack(">iI", size, MAGIC_BLANK)


def decode(data: bytes, at: int = 0, physical_offset: int | None = None, verify_crc: bool = True) -> Record | Blank:
    """The record at `at`; raises `Malformed` where a recovery would stop.

    `physical_offset` is where the record stands in the log: one that believes to be elsewhere is malformed as well.
    """
    if len(data) - at < MIN_BLANK_BYTES:
        raise Malformed(f"{len(data) - at} bytes left, expected at least {MIN_BLANK_BYTES}")
    size, magic = struct.unpack_from(">iI", data, at)
    if magic == MAGIC_BLANK:
        return Blank(at if physical_offset is None else physical_offset, size)
    if magic not in (MAGIC_V1, MAGIC_V2):
        raise Malformed(f"magic {magic:#010x}")
    try:
        record = _Cursor(data, at).record(magic == MAGIC_V2)
    except struct.error as error:
        raise Malformed(str(error)) from error
    if record.store_size != size:
        raise Malformed(f"size {size}, its parts have {record.store_size}")
    if verify_crc and body_crc(record.body) != record.body_crc:
        raise Malformed(f"body crc {record.body_crc}, expected {body_crc(record.body)}")
    if physical_offset is not None and record.physical_offset != physical_offset:
        raise Malformed(f"physical offset {record.physical_offset}, expected {physical_offset}")
    return record


def is_protected(record: Record, at: int) -> bool:
    """Whether a change of the byte at `at` of a record shows: sizes, magic, CRC, physical offset, body.

    `docs/damage.md` lists the rest.
    """
    topic = _body_at(record) + 4 + len(record.body) + (2 if record.v2 else 1)
    properties_at = record.store_size - len(record.property_bytes)
    protected = (range(12), range(28, 36), range(_body_at(record), topic), range(properties_at - 2, properties_at))
    return any(at in part for part in protected)


def is_checked(record: Record, at: int) -> bool:
    """Whether a change of the byte at `at` shows by the body's CRC alone."""
    return at in range(8, 12) or at in range(_body_at(record) + 4, _body_at(record) + 4 + len(record.body))


def _body_at(record: Record) -> int:
    """Where the length of the body stands."""
    return 68 + sum(20 if record.sys_flag & flag else 8 for flag in (BORN_HOST_V6, STORE_HOST_V6))


def verify_property_crc(data: bytes) -> bool:
    """Whether the encoded record `data` ends in the CRC of what is before it."""
    checked = data[: -properties.CRC_RESERVED_BYTES]
    return data[len(checked) :] == properties.encode_crc(checked)


class _Cursor:
    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.start, self.at = data, at, at

    def record(self, v2: bool) -> Record:
        crc, queue_id, flag, queue_offset, physical_offset, sys_flag, born = self.take(">8xiiiqqiq")
        born_host = Host.decode(self.raw(20 if sys_flag & BORN_HOST_V6 else 8))
        (store_timestamp,) = self.take(">q")
        store_host = Host.decode(self.raw(20 if sys_flag & STORE_HOST_V6 else 8))
        reconsume_times, prepared = self.take(">iq")
        body = self.counted(">i")
        topic = self.counted(">h" if v2 else ">b").decode(errors="replace")
        property_bytes = self.counted(">h")
        return Record(
            topic=topic,
            queue_id=queue_id,
            queue_offset=queue_offset,
            physical_offset=physical_offset,
            body=body,
            property_bytes=property_bytes,
            flag=flag,
            sys_flag=sys_flag,
            born_timestamp=born,
            born_host=born_host,
            store_timestamp=store_timestamp,
            store_host=store_host,
            reconsume_times=reconsume_times,
            prepared_transaction_offset=prepared,
            v2=v2,
            body_crc=crc,
            store_size=self.at - self.start,
        )

    def take(self, layout: str) -> tuple[int, ...]:
        values = struct.unpack_from(layout, self.data, self.at)
        self.at += struct.calcsize(layout)
        return values

    def raw(self, size: int) -> bytes:
        taken = self.data[self.at : self.at + size]
        if size < 0 or len(taken) < size:
            raise struct.error(f"{size} bytes wanted at {self.at}, {len(taken)} are there")
        self.at += size
        return taken

    def counted(self, layout: str) -> bytes:
        return self.raw(self.take(layout)[0])
