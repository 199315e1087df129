"""The broker's offset message id, upper-case hex.

Source: MessageDecoder.createMessageId, decodeMessageId.
"""

from __future__ import annotations

import struct

from .host import Host


def encode(store_host: Host, physical_offset: int) -> str:
    """The offset message id: 32 digits with an IPv4 store host, 56 with IPv6."""
    return (store_host.encode() + struct.pack(">q", physical_offset)).hex().upper()


def decode(text: str) -> tuple[Host, int]:
    """Store host and physical offset of an offset message id."""
    data = bytes.fromhex(text)
    if len(data) not in (16, 28):
        raise ValueError(f"message id of {len(text)} digits, expected 32 or 56")
    return Host.decode(data[:-8]), struct.unpack(">q", data[-8:])[0]
