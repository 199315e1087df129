"""An HA port that serves the commit log of a store as its files are, for brokers that have none."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

FRAME = 32 << 10
Frames = Iterator[bytes]


class LogServer:
    """Listens on loopback as soon as it is made; `with` ends it.

    Attributes:
        directory: Of the store; set before somebody connects.
        spoil: Makes of the frames of a connection what the peer gets; it is closed behind them.
        asked: Where each connection began.
    """

    def __init__(self) -> None:
        self.directory = Path()
        self.spoil: Callable[[Frames], Frames] | None = None
        self.asked: list[int] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self._listener.getsockname()[1]
        return port

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends all connections, and listens no more."""
        for one in (self._listener, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._open.add(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            asked = int.from_bytes(connection.recv(8, socket.MSG_WAITALL))
            self.asked.append(asked)
            served = frames(self.directory, asked)
            for part in served if self.spoil is None else self.spoil(served):
                connection.sendall(part)
            if self.spoil is not None:
                # to close it with a report that nobody read would take from the peer what it has not read
                connection.shutdown(socket.SHUT_WR)
            # a master goes on, until nobody is there any more
            while connection.recv(1 << 16):
                pass


def frames(store: Path, start: int) -> Frames:
    """A keep-alive, then the log from a place to the end of its last file."""
    yield frame(start, b"")
    for file in sorted((store / "commitlog").iterdir()):
        base, size = int(file.name), file.stat().st_size
        if base + size <= start:
            continue
        with file.open("rb") as log:
            log.seek(max(start - base, 0))
            while part := log.read(FRAME):
                yield frame(base + log.tell() - len(part), part)


def frame(offset: int, content: bytes) -> bytes:
    """A frame as masters send it."""
    return struct.pack(">qi", offset, len(content)) + content
