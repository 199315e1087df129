"""A client at the other end of a socket: asks, is told, is asked."""

from __future__ import annotations

import json
import queue
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from tests.waiting import PATIENCE

#: What the client answers where it is asked: a body by header fields and body; None where it keeps silent.
Answer = Callable[[dict[str, str], bytes], bytes | None]


class SocketClient:
    """A connection with a thread that reads it, as those of RocketMQ have.

    Attributes:
        notices: The groups of which the broker told that they changed.
        asked: What the broker asked: code, fields, body.
        ended: Is set when the connection is no more.
    """

    def __init__(self, address: str, answers: dict[int, Answer] | None = None, version: int = 401) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=PATIENCE)
        self._socket.settimeout(None)  # the one who reads waits for ever
        self.address = "{}:{}".format(*self._socket.getsockname())
        self._answers = answers or {}
        self._version = version
        self._opaque = 0
        self._responses: queue.Queue[tuple[dict[str, Any], bytes]] = queue.Queue()
        self.notices: queue.Queue[str] = queue.Queue()
        self.asked: queue.Queue[tuple[int, dict[str, str], bytes]] = queue.Queue()
        self.ended = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def ask(self, code: int, body: bytes = b"", **fields: object) -> tuple[dict[str, Any], bytes]:
        """The header and the body of the answer."""
        self._opaque += 1
        ext_fields = {name: str(value) for name, value in fields.items()}
        self._send({"code": code, "extFields": ext_fields, "flag": 0, "opaque": self._opaque}, body)
        header, answer = self._responses.get(timeout=PATIENCE)
        assert header["opaque"] == self._opaque
        return header, answer

    def close(self) -> None:
        """Ends the connection, as a process does that is killed."""
        with suppress(OSError):  # the broker may have been the first
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._reader.join(PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, header: dict[str, Any], body: bytes) -> None:
        told = {"language": "JAVA", "serializeTypeCurrentRPC": "JSON", "version": self._version} | header
        data = json.dumps(told).encode()
        frame = (4 + len(data) + len(body)).to_bytes(4, "big") + len(data).to_bytes(4, "big") + data + body
        self._socket.sendall(frame)

    def _read(self) -> None:
        try:
            while size := self._exactly(4):
                self._take(self._exactly(int.from_bytes(size, "big")))
        except OSError:
            pass
        finally:
            self.ended.set()

    def _take(self, frame: bytes) -> None:
        length = int.from_bytes(frame[1:4], "big")
        header, body = json.loads(frame[4 : 4 + length]), frame[4 + length :]
        if header["flag"] & 1:
            self._responses.put((header, body))
        elif header["code"] == 40:
            self.notices.put(header["extFields"]["consumerGroup"])
        else:
            self._asked(header, body)

    def _asked(self, header: dict[str, Any], body: bytes) -> None:
        fields = header.get("extFields") or {}
        self.asked.put((header["code"], fields, body))
        answer = self._answers.get(header["code"])
        told = answer(fields, body) if answer else None
        if told is not None and not header["flag"] & 2:
            self._send({"code": 0, "flag": 1, "opaque": header["opaque"]}, told)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self._socket.recv(count - len(data))
            if not more:
                return b""
            data += more
        return data
