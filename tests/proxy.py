"""Stands between clients and a server: changes what goes over each connection, holds answers back, or is gone."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Self

from rmqfast import EmbeddedCluster
from rmqfast.client.instance import ClientConfig
from tests.broker.interop.frames import JSON, Frame

__all__ = ["FlippedBit", "OtherFields", "Passage", "Proxy", "Stream", "frames", "gated"]

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
        position = 0
        for piece in map(bytearray, stream):
            if self._place is not None and position <= self._place < position + len(piece):
                piece[self._place - position] ^= 1
            position += len(piece)
            yield bytes(piece)


class OtherFields(Passage):
    """Has the server answer requests of a code as if they had other header fields."""

    def __init__(self, code: int, **fields: str) -> None:
        self._code, self._fields = code, fields

    def requests(self, stream: Stream) -> Stream:
        for frame in map(Frame.read, frames(stream)):
            fields = frame.fields | (self._fields if frame.code == self._code else {})
            yield Frame(JSON, frame.header | {"extFields": fields}, frame.body).written()


def frames(stream: Stream) -> Stream:
    """Whole frames, however they came."""
    data = b""
    for piece in stream:
        data += piece
        while len(data) >= 4 and len(data) >= (end := 4 + struct.unpack_from(">I", data)[0]):
            yield data[:end]
            data = data[end:]


class Proxy:
    """Forwards connections from one address to another from the beginning until `close`, or the end of a `with` block.

    The port is this process's for as long as the proxy lives, so no other process can take it while a server restarts.

    Args:
        server: The address of the server, `host:port`; without one connections are refused until `lead_to`.
        passage: Makes the passage of a connection by its number; may be set anew between two connections.
        listen: Where it listens; any port of loopback unless given.

    Attributes:
        address: Where it listens, `host:port`.
        connections: How many connections came.
    """

    def __init__(
        self,
        server: str | None = None,
        passage: Callable[[int], Passage] = lambda _: Passage(),
        *,
        listen: str = "127.0.0.1:0",
    ) -> None:
        self.passage, self.connections = passage, 0
        self._server: tuple[str, int] | None = None
        self._open = threading.Event()
        self._open.set()
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._threads: set[threading.Thread] = set()
        # a port that is bound and not listened at refuses connections, and is nobody else's
        self._listener = socket.socket()
        self._listener.bind(_pair(listen))
        self.address = "{}:{}".format(*self._listener.getsockname())
        if server is not None:
            self.lead_to(server)

    def lead_to(self, server: str) -> None:
        """Forwards new connections to this server."""
        is_first = self._server is None
        self._server = _pair(server)
        if is_first:
            # connections that linger shall not keep the port from `up`
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listener.listen()
            self._start(self._accept, self._listener)

    def shut(self) -> None:
        """Holds answers back."""
        self._open.clear()

    def open(self) -> None:
        """Lets answers through, those that were held back first."""
        self._open.set()

    def down(self) -> None:
        """Ends all connections, and takes no others until it is `up`."""
        self.open()
        with self._lock:
            sockets, threads = list(self._sockets), list(self._threads)
        for end in (self._listener, *sockets):
            _shut(end, socket.SHUT_RDWR)
        self._listener.close()
        for thread in threads:
            thread.join()
        for end in sockets:
            end.close()
        with self._lock:
            self._sockets.difference_update(sockets)

    def up(self) -> None:
        """Takes connections again, on the same port."""
        self._listener = socket.create_server(_pair(self.address))
        self._start(self._accept, self._listener)

    def crowd(self) -> None:
        """Ends all connections; others are neither accepted nor refused."""
        self.down()
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(_pair(self.address))
        self._listener.listen(0)
        # fills the queue of connections, so that the system ignores further ones
        self._sockets.add(socket.create_connection(_pair(self.address)))

    close = down

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, work: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        with self._lock:
            self._threads.add(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                try:
                    server = socket.create_connection(self._server or ("", 0))
                except OSError:  # it is not there at the moment
                    client.close()
                    continue
                number, self.connections = self.connections, self.connections + 1
                with self._lock:
                    self._sockets |= {client, server}
                self._start(self._pass, client, server, self.passage(number))

    def _pass(self, client: socket.socket, server: socket.socket, passage: Passage) -> None:
        requests = threading.Thread(target=_forward, args=(client, server, passage.requests), daemon=True)
        requests.start()
        _forward(server, client, lambda stream: self._released(passage.answers(stream)))
        requests.join()
        with self._lock:
            self._sockets -= {client, server}
            self._threads.discard(threading.current_thread())
        client.close()
        server.close()

    def _released(self, answers: Stream) -> Stream:
        for piece in answers:
            self._open.wait()
            yield piece


@contextmanager
def gated(cluster: EmbeddedCluster) -> Iterator[tuple[Proxy, ClientConfig]]:
    """A proxy before a cluster's broker, and how clients go through it."""
    with Proxy(cluster.brokers[0].address) as gate:
        yield gate, ClientConfig(name_server=cluster.name_server, translate_address=lambda _: gate.address)


def _pair(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


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
