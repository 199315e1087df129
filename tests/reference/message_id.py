"""Message ids: the broker's offset id and the producer's UNIQ_KEY, both upper-case hex.

Source: MessageDecoder.createMessageId, decodeMessageId; MessageClientIDSetter.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

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


@dataclass(frozen=True)
class UniqueKey:
    """The parts of a UNIQ_KEY; `milliseconds` counts from the start of the month in the client's time zone."""

    ip: str
    pid: int
    class_loader: int
    milliseconds: int
    counter: int

    def encode(self) -> str:
        address = socket.inet_pton(socket.AF_INET6 if ":" in self.ip else socket.AF_INET, self.ip)
        tail = struct.pack(">HIIH", self.pid, self.class_loader, self.milliseconds, self.counter)
        return (address + tail).hex().upper()

    @staticmethod
    def decode(text: str) -> UniqueKey:
        data = bytes.fromhex(text)
        if len(data) not in (16, 28):
            raise ValueError(f"unique key of {len(text)} digits, expected 32 or 56")
        host = Host.decode(data[:-12] + bytes(4))
        return UniqueKey(host.ip, *struct.unpack(">HIIH", data[-12:]))
