"""The ports of a broker: one to listen at, and a second one two below.

Source: `BrokerController.initialize`, `MixAll.brokerVIPChannel`.
"""

from __future__ import annotations

import socket
from contextlib import suppress

from rmqfast.errors import ArgumentError, RemotingError

__all__ = ["VIP_DISTANCE", "bracketed", "free_port", "refuse_taken"]

#: The second listener stands so many ports below the first.
VIP_DISTANCE = 2
_TRIES = 20


def bracketed(host: str) -> str:
    """A host as it stands before a port.

    Example:
        >>> bracketed("::1"), bracketed("127.0.0.1")
        ('[::1]', '127.0.0.1')
    """
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def free_port(host: str) -> int:
    """A port that is free, as the one two below it is.

    Raises:
        RemotingError: None is found.
    """
    for _ in range(_TRIES):
        with _socket(host) as first, _socket(host) as second, suppress(OSError):
            first.bind((host, 0))
            port: int = first.getsockname()[1]
            second.bind((host, port - VIP_DISTANCE))
            return port
    raise RemotingError(f"no two ports are free at {host}")


def refuse_taken(host: str, port: int) -> None:
    """Looks whether a port can be had, before anything is opened or made for whoever would listen there.

    Raises:
        RemotingError: It cannot.
        ArgumentError: It is no port.
    """
    if not 0 < port < 1 << 16:
        raise ArgumentError(f"listenPort: expected a port, 0 to 65535, got {port}")
    with _socket(host) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
        except OSError as error:
            raise RemotingError(f"listening at {bracketed(host)}:{port}: {error.strerror}") from error


def _socket(host: str) -> socket.socket:
    return socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
