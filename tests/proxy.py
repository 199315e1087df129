"""Stands between clients and a server, and may change what goes over each connection."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self

__all__ = ["FlippedBit", "Passage", "Proxy", "Stream"]

Address = tuple[str, int]
#: What came over a connection in one direction, piece by piece.
Stream = Iterator[bytes]


class Passage:
    """One connection; each direction runs on a thread of its own. Where one ends, the connection does."""

    def requests(self, stream: Stream) -> Stream:
        """Makes of what the client sends what the server gets."""
        return stream

    def answers(self, stream: Stream) -> Stream:
        """Makes of what the server sends what the client gets."""
        return stream


class FlippedBit(Passage):
    """Flips the lowest bit of one byte that the server sends; of none where that is None."""

    def __init__(self, place: int | None) -> None:
        self._place = place

    def answers(self, stream: Stream) -> Stream:
        """With the bit flipped."""
        position = 0
        for piece in map(bytearray, stream):
            if self._place is not None and position <= self._place < position + len(piece):
                piece[self._place - position] ^= 1
            position += len(piece)
            yield bytes(piece)


class Proxy:
    """Forwards connections from one address to another; `with` starts and ends it.

    Args:
        server: Where it connects to.
        passage: What becomes of the connection of this number; may be set anew between two connections.
        listen: Where it listens; any port of loopback unless given.

    Attributes:
        address: Where it listens.
        connections: How many connections came.
    """

    def __init__(
        self,
        server: Address,
        passage: Callable[[int], Passage] = lambda _: Passage(),
        *,
        listen: Address = ("127.0.0.1", 0),
    ) -> None:
        self.passage, self.connections = passage, 0
        self._server = server
        self._listener = socket.create_server(listen)
        self.address: Address = self._listener.getsockname()
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = {self._listener}
        self._threads = {threading.Thread(target=self._accept, daemon=True)}

    def __enter__(self) -> Self:
        for thread in list(self._threads):
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            sockets, threads = list(self._sockets), list(self._threads)
        for end in sockets:
            _shut(end, socket.SHUT_RDWR)
        self._listener.close()
        for thread in threads:
            thread.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(self._server)
                except OSError:  # it is not there at the moment
                    client.close()
                    continue
                number, self.connections = self.connections, self.connections + 1
                thread = threading.Thread(target=self._pass, args=(client, server, self.passage(number)), daemon=True)
                with self._lock:
                    self._sockets |= {client, server}
                    self._threads.add(thread)
                thread.start()

    def _pass(self, client: socket.socket, server: socket.socket, passage: Passage) -> None:
        requests = threading.Thread(target=_forward, args=(client, server, passage.requests), daemon=True)
        requests.start()
        _forward(server, client, passage.answers)
        requests.join()
        with self._lock:
            self._sockets -= {client, server}
            self._threads.discard(threading.current_thread())
        client.close()
        server.close()


def _forward(source: socket.socket, target: socket.socket, change: Callable[[Stream], Stream]) -> None:
    try:
        with suppress(OSError):
            for piece in change(_pieces(source)):
                target.sendall(piece)
    finally:
        # to close it now would take from the other side what it has not read
        _shut(target, socket.SHUT_WR)
    with suppress(OSError):
        for _ in _pieces(source):
            pass


def _pieces(source: socket.socket) -> Stream:
    while piece := source.recv(1 << 16):
        yield piece


def _shut(end: socket.socket, how: int) -> None:
    with suppress(OSError):
        end.shutdown(how)
