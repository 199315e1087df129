"""Stands before a server, and can be down while the server itself runs on."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self


class Relay:
    """Hands bytes on to a server and back, on a port of its own."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = host, int(port)
        self._open: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._port = self._listening.getsockname()[1]

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"127.0.0.1:{self._port}"

    def up(self) -> None:
        """Takes connections again, on the same port."""
        self._listening = socket.create_server(("127.0.0.1", self._port))
        self._start(self._accept, self._listening)

    def down(self) -> None:
        """Ends all connections, and takes no others."""
        for each in (self._listening, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._open.clear()

    def __enter__(self) -> Self:
        self._start(self._accept, self._listening)
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    def _accept(self, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                taken, _ = listening.accept()
                beyond = socket.create_connection(self._target)
                self._open += [taken, beyond]
                self._start(_copy, taken, beyond)
                self._start(_copy, beyond, taken)

    @staticmethod
    def _start(work: object, *arguments: object) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()  # type: ignore[arg-type]


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    for each in (source, target):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
