"""A way to a broker on which bits flip."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

__all__ = ["FlippingProxy"]


class FlippingProxy:
    """Forwards connections from one address to another; bits flip in what the server sends.

    Args:
        listen: Where it listens.
        server: Where it connects to.
        flipped: The byte of the stream whose lowest bit flips, of the connection of this number; None for no byte.
    """

    def __init__(
        self, listen: tuple[str, int], server: tuple[str, int], flipped: Callable[[int], int | None] = lambda _: None
    ) -> None:
        self._server, self._flipped = server, flipped
        self._listener = socket.create_server(listen)
        self._sockets: list[socket.socket] = [self._listener]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        #: Connections that came.
        self.connections = 0

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for end in list(self._sockets):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        for thread in list(self._threads):
            thread.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                self._sockets += (client, server)
                number, self.connections = self.connections, self.connections + 1
                self._start(client, server, None)
                self._start(server, client, self._flipped(number))

    def _start(self, source: socket.socket, target: socket.socket, flipped: int | None) -> None:
        thread = threading.Thread(target=_forward, args=(source, target, flipped), daemon=True)
        self._threads.append(thread)
        thread.start()


def _forward(source: socket.socket, target: socket.socket, flipped: int | None) -> None:
    position = 0
    with suppress(OSError):
        while data := bytearray(source.recv(1 << 16)):
            if flipped is not None and position <= flipped < position + len(data):
                data[flipped - position] ^= 1
            position += len(data)
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
