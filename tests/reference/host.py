"""A host as records and message ids hold it: 4 or 16 address bytes in network order, then the port as i32.

Source: MessageExt.socketAddress2ByteBuffer.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass


@dataclass(frozen=True)
class Host:
    """`ip` as text, `port` with the 32 bits that the record has for it."""

    ip: str
    port: int

    @property
    def is_v6(self) -> bool:
        return ":" in self.ip

    def encode(self) -> bytes:
        family = socket.AF_INET6 if self.is_v6 else socket.AF_INET
        return socket.inet_pton(family, self.ip) + struct.pack(">i", self.port)

    @staticmethod
    def decode(data: bytes) -> Host:
        address = data[:-4]
        family = {4: socket.AF_INET, 16: socket.AF_INET6}[len(address)]
        return Host(_text(family, address), struct.unpack(">i", data[-4:])[0])

    def __str__(self) -> str:
        return f"[{self.ip}]:{self.port}" if self.is_v6 else f"{self.ip}:{self.port}"


def _text(family: int, address: bytes) -> str:
    text = socket.inet_ntop(family, address)
    # glibc writes ::1.2.3.4 for the long dead IPv4-compatible addresses; everybody else writes ::102:304
    if family == socket.AF_INET6 and "." in text and not text.startswith("::ffff:"):
        high, low = struct.unpack(">HH", address[12:])
        return f"::{high:x}:{low:x}"
    return text
