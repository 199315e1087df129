"""Ready frames over one plain socket: what a broker takes from a client that has nothing to do."""

from __future__ import annotations

import socket
import struct
import time
from functools import partial

from broker import wire
from broker.sides import Side
from peer import Answer, Failed, timed

#: What a client's messages have, too: a tag, and an id of 32 digits.
PROPERTIES = b"TAGS\x01t42\x02UNIQ_KEY\x01" + b"0123456789ABCDEF" * 2 + b"\x02WAIT\x01true\x02"
QUEUES = 4
#: Batches in flight, by row: as many as the client has.
IN_FLIGHT = {"batch": 1, "columns": 4}


def ask(side: Side, row: str, topic: str, *numbers: int) -> Answer:
    """Sends frames that are made before: bytes of a body, messages, then messages of a batch or requests in flight."""
    size, count, last = numbers
    if row in IN_FLIGHT:
        frames, in_flight, batch = (
            [batch_frame(topic, size, last, queue) for queue in range(QUEUES)],
            IN_FLIGHT[row],
            last,
        )
    else:
        frames, in_flight, batch = [frame(topic, size, queue) for queue in range(QUEUES)], last, 1
    with socket.create_connection(side.address, 5) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return timed(partial(send, connection, frames, count // batch, in_flight, batch))


def send(connection: socket.socket, frames: list[bytes], count: int, in_flight: int, batch: int) -> Answer:
    """Has so many frames in flight until all are answered."""
    for number in range(count + in_flight):
        if number >= in_flight and (said := wire.answer(connection))["code"] != 0:
            raise Failed(f"a send was refused: {said}")
        if number < count:
            connection.sendall(frames[number % len(frames)])
    return {"rows": count * batch}


def frame(topic: str, size: int, queue: int) -> bytes:
    """A request that sends a message to a queue.

    Source: `SendMessageRequestHeaderV2`.
    """
    fields = header(topic, queue) | {"i": PROPERTIES.decode(), "m": "false"}
    return wire.frame(wire.SEND_MESSAGE, fields, bytes(size))


def header(topic: str, queue: int) -> dict[str, object]:
    fields: dict[str, object] = {"a": "bare", "b": topic, "c": "TBW102", "d": QUEUES, "e": queue, "f": 0}
    return fields | {"g": int(time.time() * 1000), "h": 0, "j": 0, "k": "false"}


def batch_frame(topic: str, size: int, batch: int, queue: int) -> bytes:
    """A request that sends a batch to a queue.

    Source: `SendMessageRequestHeaderV2`, `MessageDecoder.encodeMessages`.
    """
    fields = header(topic, queue) | {"i": "WAIT\x01true", "m": "true"}
    body = bytes(size)
    message = struct.pack(">iiiii", 22 + size + len(PROPERTIES), 0, 0, 0, size) + body
    return wire.frame(
        wire.SEND_BATCH_MESSAGE, fields, (message + struct.pack(">h", len(PROPERTIES)) + PROPERTIES) * batch
    )
