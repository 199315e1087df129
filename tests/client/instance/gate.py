"""An address that stays while servers behind it come and go, and holds their answers back."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

from rmqfast import EmbeddedCluster
from rmqfast.client.instance import ClientConfig


class Gate:
    """Passes connections on to a server, and holds its answers back while it is shut.

    The port is this process's for as long as the gate lives, so no other process can take it while a server restarts.

    Args:
        target: The address of the server; without one connections are refused until `lead_to`.
    """

    def __init__(self, target: str | None = None) -> None:
        # a port that is bound and not listened at refuses connections, and is nobody else's
        self._listening = socket.socket()
        self._listening.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self._target: tuple[str, int] | None = None
        self._open = threading.Event()
        self._open.set()
        self._sockets = [self._listening]
        if target is not None:
            self.lead_to(target)

    def lead_to(self, target: str) -> None:
        """Passes new connections on to this server."""
        is_first = self._target is None
        host, _, port = target.rpartition(":")
        self._target = host, int(port)
        if is_first:
            # connections that linger shall not keep the port from `up`
            self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listening.listen()
            self._start(self._accept)

    def shut(self) -> None:
        """No answer gets through."""
        self._open.clear()

    def open(self) -> None:
        """What was held back, and what comes, gets through."""
        self._open.set()

    def down(self) -> None:
        """Ends all connections, and takes no others until it is `up`."""
        self.close()
        self._sockets.clear()

    def up(self) -> None:
        """Takes connections again, on the same port."""
        host, _, port = self.address.rpartition(":")
        self._listening = socket.create_server((host, int(port)))
        self._sockets.append(self._listening)
        self._start(self._accept)

    def crowd(self) -> None:
        """Ends all connections; others are neither accepted nor refused."""
        self.down()
        self._listening = socket.socket()
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        host, _, port = self.address.rpartition(":")
        self._listening.bind((host, int(port)))
        self._listening.listen(0)
        # fills the queue of connections, so that the system ignores further ones
        self._sockets += [self._listening, socket.create_connection((host, int(port)))]

    def close(self) -> None:
        """Ends all connections."""
        self.open()
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                taken, _ = self._listening.accept()
                self._sockets.append(taken)
                try:
                    beyond = socket.create_connection(self._target or ("", 0))
                except OSError:  # the server is not there at the moment
                    taken.close()
                    continue
                self._sockets.append(beyond)
                self._start(self._copy, taken, beyond, is_answer=False)
                self._start(self._copy, beyond, taken, is_answer=True)

    def _copy(self, source: socket.socket, target: socket.socket, *, is_answer: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if is_answer:
                    self._open.wait()
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _start(work: Callable[..., None], *args: Any, **named: Any) -> None:
        threading.Thread(target=work, args=args, kwargs=named, daemon=True).start()


@contextlib.contextmanager
def gated(cluster: EmbeddedCluster) -> Iterator[tuple[Gate, ClientConfig]]:
    """A gate before a cluster's broker, and how clients go through it."""
    gate = Gate(cluster.brokers[0].address)
    try:
        yield gate, ClientConfig(name_server=cluster.name_server, translate_address=lambda _: gate.address)
    finally:
        gate.close()
