"""Reserves the three ports of a broker before it listens: its own, the VIP port two below, and that for slaves above.

Source: RocketMQ's `BrokerController`, `MixAll`, `BrokerStartup`.
"""

from __future__ import annotations

import socket
from contextlib import suppress

from rmqfast.errors import ArgumentError, RemotingError
from rmqfast.remoting.loopback import with_brackets

__all__ = ["HA_DISTANCE", "VIP_DISTANCE", "ReservedPorts", "check_port_is_free"]

#: The second listener stands so many ports below the first.
VIP_DISTANCE = 2
#: That for slaves stands so many above, unless `haListenPort` says otherwise.
HA_DISTANCE = 1
#: Beside thousands of connections that were just closed few ports have free neighbours.
_TRIES = 1000


class ReservedPorts:
    """Reserves a free port, the one two below it and the next one, until `release`.

    A broker has to know its port before it opens its store, and listens later.

    Raises:
        RemotingError: No three are found.

    Example:
        >>> reserved = ReservedPorts("127.0.0.1")
        >>> check_port_is_free("127.0.0.1", reserved.port)
        >>> reserved.release()
    """

    def __init__(self, host: str) -> None:
        for _ in range(_TRIES):
            self._sockets = [_socket(host), _socket(host), _socket(host)]
            # the last port has none above it
            with suppress(OSError, OverflowError):
                self._sockets[0].bind((host, 0))
                self.port: int = self._sockets[0].getsockname()[1]
                self._sockets[1].bind((host, self.port - VIP_DISTANCE))
                self._sockets[2].bind((host, self.port + HA_DISTANCE))
                for each in self._sockets:
                    # not before: two that say so could have the same port; from now on a listener is let in
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                return
            self.release()
        raise RemotingError(f"no three ports are free at {host}")

    def release(self) -> None:
        for each in self._sockets:
            each.close()


def check_port_is_free(host: str, port: int) -> None:
    """Checks a port before the store is opened."""
    if not 0 < port < 1 << 16:
        raise ArgumentError(f"listenPort: expected a port, 0 to 65535, got {port}")
    with _socket(host) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
        except OSError as error:
            raise RemotingError(f"listening at {with_brackets(host)}:{port}: {error.strerror}") from error


def _socket(host: str) -> socket.socket:
    return socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
