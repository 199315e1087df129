"""A reply as a broker pushes it: no record, but a header and a body. Here it becomes the record that it would be.

```text
4 total size   4 magic        4 body CRC     4 queue id      4 flag
8 offset 0     8 place 0      4 sys flag     8 born time     8 or 20 born host   8 store time   8 or 20 store host
4 reconsumed   8 prepared 0   4 + n body     1 + n topic     2 + n properties
```

Source: `ClientRemotingProcessor.receiveReplyMessage`, `ReplyMessageRequestHeader`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from rmqfast._native import MessageView
from rmqfast.client.instance.message_decoder import decode_message
from rmqfast.errors import RemotingProtocolError
from rmqfast.remoting import Header

_MAGIC = 0xDAA320A7
_HEAD = struct.Struct(">IIIiiqqiq")
_MIDDLE = struct.Struct(">iqi")
_BORN_HOST_V6, _STORE_HOST_V6 = 0x10, 0x20
_ARRIVED = "ARRIVE_TIME"
_IS, _END = "\x01", "\x02"


def reply_of(ext_fields: Mapping[str, str], body: bytes, *, now: int) -> MessageView:
    """The message that a pushed reply is, with the time of its arrival as a property.

    Args:
        ext_fields: The header.
        body: The body as it was sent: compressed where the header says so.
        now: Milliseconds since 1970.

    Raises:
        ResponseError: A field is missing, or of another type.
        RemotingProtocolError: There is no such message.

    Example:
        >>> header = {"topic": "DefaultCluster_REPLY_TOPIC", "queueId": "0", "flag": "0", "sysFlag": "0"}
        >>> times = {"bornTimestamp": "5", "storeTimestamp": "6", "properties": "CORRELATION_ID" + chr(1) + "7"}
        >>> hosts = {"bornHost": "/127.0.0.1:5", "storeHost": "/127.0.0.1:10911"}
        >>> reply = reply_of({**header, **times, **hosts}, b"yes", now=8)
        >>> reply.body, reply.properties["CORRELATION_ID"], reply.properties["ARRIVE_TIME"]
        (b'yes', '7', '8')
    """
    header = Header(ext_fields)
    born, store = _Host.of(header.text("bornHost")), _Host.of(header.text("storeHost"))
    sys_flag = header.number("sysFlag") & ~(_BORN_HOST_V6 | _STORE_HOST_V6)
    sys_flag |= (born.is_v6 and _BORN_HOST_V6) | (store.is_v6 and _STORE_HOST_V6)
    told = header.optional_text("properties") or ""
    properties = f"{told}{'' if not told or told.endswith(_END) else _END}{_ARRIVED}{_IS}{now}".encode()
    topic = header.text("topic").encode()
    try:
        head = _HEAD.pack(
            0,
            _MAGIC,
            zlib.crc32(body) & 0x7FFF_FFFF,
            header.number("queueId"),
            header.number("flag"),
            0,
            0,
            sys_flag,
            header.number("bornTimestamp"),
        )
        stored = struct.pack(">q", header.number("storeTimestamp"))
        middle = _MIDDLE.pack(header.number("reconsumeTimes", 0), 0, len(body))
        named = struct.pack(">B", len(topic)) + topic + struct.pack(">h", len(properties)) + properties
    except struct.error as error:
        raise RemotingProtocolError(f"a reply with a value out of range: {error}") from error
    rest = b"".join([head[4:], born.data, stored, store.data, middle, body, named])
    return decode_message(struct.pack(">I", len(rest) + 4) + rest, None)


class _Host(NamedTuple):
    """An address as a record has it."""

    data: bytes
    is_v6: bool

    @classmethod
    def of(cls, text: str) -> _Host:
        """That of a text; Java's have a name or nothing before a slash.

        Raises:
            RemotingProtocolError: It is none.
        """
        host, _, port = text.rpartition("/")[2].rpartition(":")
        try:
            address = ip_address(host.strip("[]"))
            return cls(address.packed + struct.pack(">i", int(port)), isinstance(address, IPv6Address))
        except (ValueError, struct.error):
            raise RemotingProtocolError(f"a reply from {text[:80]!r}: expected an address and a port") from None
