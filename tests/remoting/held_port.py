"""A port where nobody listens until the test does."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_port() -> Iterator[str]:
    """An address that the system gives to no other process: connections are refused, and a server may listen there.

    A port that was bound and closed again may be somebody else's by the time that it is used.
    """
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        # only from now on: who listens there is let in, and nobody had the port before
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        yield f"127.0.0.1:{held.getsockname()[1]}"
