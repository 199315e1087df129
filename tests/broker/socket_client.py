"""A client at the other end of a socket: asks, is told, is asked."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any, Self

from tests.waiting import PATIENCE

from .interop.frames import JSON, ONE_WAY, RESPONSE, Connection, Frame

#: What the client answers where it is asked: a body by header fields and body; None where it keeps silent.
Answer = Callable[[dict[str, str], bytes], bytes | None]


class SocketClient:
    """A connection with a thread that reads it, as those of RocketMQ have.

    Attributes:
        notices: The groups of which the broker told that they changed.
        asked: What the broker asked: code, fields, body.
    """

    def __init__(self, address: str, answers: dict[int, Answer] | None = None, version: int = 401) -> None:
        self._answers = answers or {}
        self._version = version
        self._opaque = 0
        self.notices: queue.Queue[str] = queue.Queue()
        self.asked: queue.Queue[tuple[int, dict[str, str], bytes]] = queue.Queue()
        host, _, port = address.rpartition(":")
        self._connection = Connection((host, int(port)), self._take)
        self.address = self._connection.local_address

    def ask(self, code: int, body: bytes = b"", **fields: object) -> tuple[dict[str, Any], bytes]:
        """The header and the body of the answer."""
        self._opaque += 1
        ext_fields = {name: str(value) for name, value in fields.items()}
        self._connection.send(self._frame({"code": code, "extFields": ext_fields, "opaque": self._opaque}, body))
        answer = self._connection.response(self._opaque, PATIENCE)
        assert answer is not None
        return answer.header, answer.body

    def close(self) -> None:
        """Ends the connection, as a process does that is killed."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _frame(self, header: dict[str, Any], body: bytes) -> bytes:
        told = {"flag": 0, "language": "JAVA", "serializeTypeCurrentRPC": JSON, "version": self._version}
        return Frame(JSON, told | header, body).written()

    def _take(self, request: Frame) -> bytes | None:
        if request.code == 40:
            self.notices.put(request.fields["consumerGroup"])
            return None
        self.asked.put((request.code, request.fields, request.body))
        answer = self._answers.get(request.code)
        told = answer(request.fields, request.body) if answer else None
        if told is None or request.header["flag"] & ONE_WAY:
            return None
        return self._frame({"code": 0, "flag": RESPONSE, "opaque": request.header["opaque"]}, told)
