"""Frames of the remoting protocol, read without the code under test."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

RESPONSE, ONE_WAY = 1, 2
JSON = "JSON"


@dataclass(frozen=True)
class Frame:
    """One request or response."""

    serialization: str
    header: dict[str, Any]
    body: bytes

    @classmethod
    def read(cls, data: bytes) -> Frame:
        """A frame from its bytes, length and all."""
        (mark,) = struct.unpack_from(">I", data, 4)
        raw, body = data[8 : 8 + (mark & 0xFFFFFF)], data[8 + (mark & 0xFFFFFF) :]
        if mark >> 24 == 0:
            return cls(JSON, json.loads(raw), body)
        return cls("ROCKETMQ", binary_header(raw), body)

    def written(self) -> bytes:
        """The frame with its header in JSON, length and all."""
        header = json.dumps(self.header).encode()
        return struct.pack(">II", 4 + len(header) + len(self.body), len(header)) + header + self.body

    @property
    def code(self) -> int:
        """Request code, or response code."""
        return int(self.header["code"])

    @property
    def fields(self) -> dict[str, str]:
        """The header's own fields."""
        return self.header.get("extFields") or {}


def binary_header(raw: bytes) -> dict[str, Any]:
    """A header in RocketMQ's binary form."""
    code, language, version, opaque, flag, remark = struct.unpack_from(">hBhiiI", raw)
    header = {"code": code, "language": language, "version": version, "opaque": opaque, "flag": flag}
    at = 17 + remark
    header |= {"remark": raw[17:at].decode()} if remark else {}
    (length,) = struct.unpack_from(">I", raw, at)
    at, end, fields = at + 4, at + 4 + length, {}
    while at < end:
        (size,) = struct.unpack_from(">h", raw, at)
        name = raw[at + 2 : at + 2 + size].decode()
        (value_size,) = struct.unpack_from(">i", raw, at + 2 + size)
        at += 6 + size + value_size
        fields[name] = raw[at - value_size : at].decode()
    return header | {"extFields": fields}


def answer_to(request: Frame, recorded: bytes) -> bytes:
    """A recorded answer in JSON, for a request with another number."""
    frame = Frame.read(recorded)
    return Frame(JSON, frame.header | {"opaque": request.header["opaque"]}, frame.body).written()


def wanting_answer(data: bytes) -> bytes:
    """A one-way request as one that is answered once it is done."""
    frame = Frame.read(data)
    if frame.serialization == JSON:
        return Frame(JSON, frame.header | {"flag": frame.header["flag"] & ~ONE_WAY}, frame.body).written()
    at = 8 + struct.calcsize(">hBhi")
    (flag,) = struct.unpack_from(">i", data, at)
    return data[:at] + struct.pack(">i", flag & ~ONE_WAY) + data[at + 4 :]


@dataclass
class Connection:
    """A connection whose requests are frames as they are; a thread reads what comes."""

    address: tuple[str, int]
    answer: Callable[[Frame], bytes | None] = lambda _: None
    responses: dict[int, Frame] = field(default_factory=dict)
    requests: list[Frame] = field(default_factory=list)
    closed: bool = False

    def __post_init__(self) -> None:
        self._socket = socket.create_connection(self.address, 10)
        self._socket.settimeout(None)
        self.local_address = "{}:{}".format(*self._socket.getsockname())
        self._sent_at = time.monotonic()
        self._arrived = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def send(self, data: bytes) -> None:
        """Sends a frame; what nobody reads any more gets no answer."""
        self._sent_at = time.monotonic()
        with contextlib.suppress(OSError):
            self._socket.sendall(data)

    @property
    def quiet(self) -> float:
        """Seconds since something was sent."""
        return time.monotonic() - self._sent_at

    def response(self, opaque: int, seconds: float) -> Frame | None:
        """The response with that number; None where there is none in time."""
        with self._arrived:
            self._arrived.wait_for(lambda: opaque in self.responses or self.closed, seconds)
            return self.responses.pop(opaque, None)

    def request(self, code: int, seconds: float) -> Frame | None:
        """The next request of the server with that code; None where there is none in time."""

        def found() -> Frame | None:
            return next((one for one in self.requests if one.code == code), None)

        with self._arrived:
            self._arrived.wait_for(lambda: found() or self.closed, seconds)
            frame = found()
            if frame is not None:
                self.requests.remove(frame)
            return frame

    def close(self) -> None:
        """Closes it."""
        with contextlib.suppress(OSError):  # the other side was first
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._socket.close()

    def _read(self) -> None:
        buffer = self._socket.makefile("rb")
        try:
            while head := buffer.read(4):
                frame = Frame.read(head + buffer.read(struct.unpack(">I", head)[0]))
                self._take(frame)
        except (OSError, ValueError, struct.error):
            pass
        finally:
            with self._arrived:
                self.closed = True
                self._arrived.notify_all()

    def _take(self, frame: Frame) -> None:
        if not frame.header.get("flag", 0) & RESPONSE:
            answer = self.answer(frame)
            if answer is not None:
                self.send(answer)
        with self._arrived:
            if frame.header.get("flag", 0) & RESPONSE:
                self.responses[frame.header["opaque"]] = frame
            else:
                self.requests.append(frame)
            self._arrived.notify_all()
