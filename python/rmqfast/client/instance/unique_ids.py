"""The ids of messages: one generator for all producers of a process.

Source: `MessageClientIDSetter`.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from functools import lru_cache

from rmqfast._native import UniqueIds
from rmqfast.client.instance.client_id import local_address


def create_unique_id() -> str:
    """An id for a message: 32 digits, 56 where this machine has IPv6 only.

    Example:
        >>> len(create_unique_id()) in {32, 56}
        True

    Source: `MessageClientIDSetter.createUniqID`.
    """
    return unique_ids().next()


def unique_ids() -> UniqueIds:
    """The generator of this process; a fork has one of its own."""
    return _of_process(os.getpid())


def month_bounds(now_ms: int) -> tuple[int, int]:
    """When the month of a time began, and when the next one does, where this machine is; all in milliseconds.

    Source: `MessageClientIDSetter.setStartTime`.
    """
    now = time.localtime(now_ms / 1000)
    begins = (time.mktime((now.tm_year, now.tm_mon + more, 1, 0, 0, 0, 0, 1, -1)) for more in (0, 1))
    start, following = begins
    return int(start) * 1000, int(following) * 1000


@lru_cache(maxsize=1)
def _of_process(pid: int) -> UniqueIds:
    # Java has the hash of a class loader in its place
    tells_apart = secrets.randbits(32) - (1 << 31)
    return UniqueIds(_packed(local_address()), pid, tells_apart, month_bounds)


def _packed(address: str) -> str:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.inet_ntop(family, socket.inet_pton(family, address.partition("%")[0]))
