"""Reserves the three ports of a broker before it listens: its own, the VIP port (-2) and the HA port (+1).

Source: RocketMQ's `BrokerController`, `MixAll`, `BrokerStartup`.
"""

from __future__ import annotations

import socket
from contextlib import suppress

from rmqfast.errors import ArgumentError, RemotingError
from rmqfast.remoting.loopback import with_brackets

#: Distance of the VIP listener's port below `listenPort`.
VIP_DISTANCE = 2
#: Distance of the HA port above `listenPort`, unless `haListenPort` is set.
HA_DISTANCE = 1
#: Many attempts, since after thousands of closed connections few ports have free neighbours.
_TRIES = 1000


class ReservedPorts:
    """Reserves a free port, the port two below and the port one above, until `release`.

    A broker must know its port before it opens its store, but listens later. `RemotingError` if no three such ports are
    free.
    """

    def __init__(self, host: str) -> None:
        for _ in range(_TRIES):
            self._sockets = [_socket(host), _socket(host), _socket(host)]
            # Port 65535 has no next port.
            with suppress(OSError, OverflowError):
                self._sockets[0].bind((host, 0))
                self.port: int = self._sockets[0].getsockname()[1]
                self._sockets[1].bind((host, self.port - VIP_DISTANCE))
                self._sockets[2].bind((host, self.port + HA_DISTANCE))
                for each in self._sockets:
                    # Only now: with SO_REUSEADDR at bind, two sockets could get the same port. From now on, a listener
                    # may bind it.
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                return
            self.release()
        raise RemotingError(f"no three ports are free at {host}")

    def release(self) -> None:
        for each in self._sockets:
            each.close()


def check_port_is_free(host: str, port: int) -> None:
    """Raises an error if a port is in use. Called before the store is opened."""
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
