"""The part of the remoting protocol that the load needs, so that no client's own speed is measured."""

from __future__ import annotations

import json
import socket
import struct
import time
from typing import Any

#: Of a send to a `SYNC_MASTER` without a slave: the message is stored.
SLAVE_NOT_AVAILABLE = 11
PULL_MESSAGE, HEART_BEAT, UPDATE_AND_CREATE_TOPIC, GET_MAX_OFFSET, SEND_MESSAGE = 11, 34, 17, 30, 310
SEND_BATCH_MESSAGE = 320
SUSPENDED_WITH_SUBSCRIPTION = 2 | 4


def frame(code: int, fields: dict[str, object], body: bytes = b"", opaque: int = 0) -> bytes:
    """A request, ready to be sent."""
    texts = {name: str(value) for name, value in fields.items()}
    header = json.dumps(
        {
            "code": code,
            "extFields": texts,
            "flag": 0,
            "language": "JAVA",
            "opaque": opaque,
            "serializeTypeCurrentRPC": "JSON",
            "version": 401,
        }
    ).encode()
    return struct.pack(">II", 4 + len(header) + len(body), len(header)) + header + body


def answer(connection: socket.socket) -> dict[str, Any]:
    """The header of the next frame that is a response; requests of the broker are passed over."""
    while True:
        (length,) = struct.unpack(">I", exactly(connection, 4))
        data = exactly(connection, length)
        (mark,) = struct.unpack_from(">I", data)
        header: dict[str, Any] = json.loads(data[4 : 4 + (mark & 0xFFFFFF)])
        if header["flag"] & 1:
            return header


def exactly(connection: socket.socket, count: int) -> bytes:
    """So many bytes."""
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise ConnectionError("the connection was closed")
        data += more
    return data


def call(address: tuple[str, int], data: bytes) -> dict[str, Any]:
    """One request on a connection of its own."""
    with socket.create_connection(address, 5) as connection:
        connection.sendall(data)
        return answer(connection)


def create_topic(address: tuple[str, int], topic: str, queues: int) -> None:
    """Makes a topic."""
    fields: dict[str, object] = {"topic": topic, "defaultTopic": "TBW102", "readQueueNums": queues}
    fields |= {
        "writeQueueNums": queues,
        "perm": 6,
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": 0,
        "order": "false",
    }
    told = call(address, frame(UPDATE_AND_CREATE_TOPIC, fields))
    if told["code"] != 0:
        raise ConnectionError(f"topic {topic}: {told}")


def message(topic: str, queue: int, body: bytes = b"hello") -> bytes:
    """A request that sends a message."""
    fields: dict[str, object] = {"a": "bench", "b": topic, "c": "TBW102", "d": 4, "e": queue, "f": 0}
    fields |= {"g": int(time.time() * 1000), "h": 0, "i": "", "j": 0, "k": "false", "m": "false"}
    return frame(SEND_MESSAGE, fields, body)


def send_to_each(address: tuple[str, int], topic: str, queues: int) -> None:
    """A small message to each queue of a topic, many of them on their way."""
    with socket.create_connection(address, 30) as connection:
        for first in range(0, queues, 100):
            several = range(first, min(first + 100, queues))
            connection.sendall(b"".join(message(topic, queue) for queue in several))
            for queue in several:
                told = answer(connection)
                if told["code"] != 0:
                    raise ConnectionError(f"topic {topic}: one of the queues to {queue} takes no message: {told}")


def first_accepted(address: tuple[str, int], seconds: float) -> float:
    """When a message was accepted for the first time, by the clock of perf_counter."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        try:
            if call(address, message("bench_first", 0))["code"] in {0, SLAVE_NOT_AVAILABLE}:
                return time.perf_counter()
        except OSError:
            pass
        time.sleep(0.002)
    raise TimeoutError(f"{address} accepted no message within {seconds} s")
