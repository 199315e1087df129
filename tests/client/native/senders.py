"""Messages put into a broker over the wire, as producers do."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from rmqfast.remoting import RemotingClient

SEND_BATCH_MESSAGE = 320


def send_batch(address: str, topic: str, queue_id: int, messages: Iterable[tuple[bytes, str]]) -> None:
    """Stores bodies with their properties, many a request."""
    encoded = [_encode(body, properties) for body, properties in messages]
    with RemotingClient(address, timeout=20.0) as client:
        for start in range(0, len(encoded), 500):
            body = b"".join(encoded[start : start + 500])
            client.ask(SEND_BATCH_MESSAGE, _fields(topic, queue_id), body)


def bodies(count: int, size: int = 20) -> list[bytes]:
    """Bodies that differ."""
    return [f"{number:08d}".encode().ljust(size, b"x") for number in range(count)]


def _fields(topic: str, queue_id: int) -> dict[str, str]:
    numbers = {"d": "4", "e": str(queue_id), "f": "0", "g": "1700000000000", "h": "0"}
    return {"a": "p", "b": topic, "c": "TBW102", "i": "", "m": "true"} | numbers


def _encode(body: bytes, properties: str) -> bytes:
    stored = properties.encode()
    head = struct.pack(">iiiii", 22 + len(body) + len(stored), 0, 0, 0, len(body))
    return head + body + struct.pack(">h", len(stored)) + stored
