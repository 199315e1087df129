"""Values: a message as a store holds it, and what stands between messages. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

__all__ = ["Damage", "Message", "MessageExt"]


class Damage(NamedTuple):
    """Bytes of a store that a reader could not use.

    Attributes:
        offset: Commit-log offset in bytes; within a consume queue or an index the offset in that.
        length: Bytes passed over; 0 where the row is there but a part of it, as its body, is not.
        reason: What was expected and what was found.
        file: Path of the file.

    Source: promise 2 of the store reader: no gap is silent.
    """

    offset: int
    length: int
    reason: str
    file: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageExt:
    """A stored message: the row of a scan as an object, column by column.

    Timestamps are milliseconds since 1970, hosts `ip:port` or `[ip6]:port`, the body is decompressed. A body that does not
    decompress is None.

    Source: `MessageExt`, `MessageDecoder.decode`.
    """

    topic: str
    broker_name: str | None
    queue_id: int
    queue_offset: int
    physical_offset: int
    msg_id: str
    offset_msg_id: str
    tags: str | None
    keys: str | None
    body: bytes | None = field(repr=False)
    properties: Mapping[str, str] = field(repr=False)
    born_timestamp: int
    store_timestamp: int
    born_host: str
    store_host: str
    flag: int
    sys_flag: int
    reconsume_times: int
    prepared_transaction_offset: int
    store_size: int
    body_crc: int


@dataclass(frozen=True, slots=True)
class Message:
    """A message to be stored.

    Args:
        topic: 1 to 127 bytes of `%|a-zA-Z0-9_-`.
        body: Bytes; at most 4 MiB unless the store was opened with another limit.
        tags: The tag, one.
        keys: Index keys, separated by spaces.
        properties: Further properties; names and values without 0x01 and 0x02.
        queue_id: Queue of the topic.
        flag: The user's 32 bits.
        born_timestamp: Milliseconds since 1970; the time of the append unless given.

    Example:
        >>> Message("orders", b"paid", tags="paid", keys="42").topic
        'orders'

    Source: `Message`, `MessageExtBrokerInner`.
    """

    topic: str
    body: bytes
    tags: str | None = None
    keys: str | None = None
    properties: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    queue_id: int = 0
    flag: int = 0
    born_timestamp: int | None = None
