"""Generates ids of clients and messages.

Source: `ClientConfig.buildMQClientId`, `RemotingUtil.getLocalAddress`, `MessageClientIDSetter`.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address

from rmqfast._native import UniqueIds
from rmqfast.system import local_addresses


def build_client_id(
    client_ip: str | None, instance_name: str, unit_name: str | None = None, *, is_stream: bool = False
) -> str:
    """Returns a client id: address, instance name, unit, and `STREAM` if `is_stream` is set, joined by `@`."""
    parts = [local_address() if client_ip is None else client_ip, instance_name]
    if unit_name and unit_name.strip():
        parts.append(unit_name)
    if is_stream:
        parts.append("STREAM")
    return "@".join(parts)


def pid_instance_name() -> str:
    """Returns a unique instance name: process id and monotonic nanoseconds."""
    return f"{os.getpid()}#{time.monotonic_ns()}"


def chosen_address(addresses: Iterable[str]) -> str:
    """Returns the address for client ids: the first IPv4 outside 192.168, else the last IPv4, else the first IPv6."""
    listed = list(addresses)
    ipv4 = [address for address in listed if ":" not in address]
    reached = [address for address in ipv4 if not address.startswith(("127.0", "192.168"))]
    return (reached[:1] or ipv4[-1:] or [address for address in listed if ":" in address][:1] or ["127.0.0.1"])[0]


@lru_cache(maxsize=1)
def local_address() -> str:
    return chosen_address(address for address in local_addresses() if not ip_address(address).is_loopback)


def create_unique_id() -> str:
    """Returns a new message id: 32 hexadecimal digits, or 56 if this machine only has IPv6.

    Example:
        >>> len(create_unique_id()) in {32, 56}
        True
    """
    return unique_ids().next()


def unique_ids() -> UniqueIds:
    """Returns the id generator of this process. A forked process gets a generator of its own."""
    return _of_process(os.getpid())


def month_bounds(now_ms: int) -> tuple[int, int]:
    """Returns the start of a time's month and of the next month, in local time, as milliseconds since 1970."""
    now = time.localtime(now_ms / 1000)
    begins = (time.mktime((now.tm_year, now.tm_mon + more, 1, 0, 0, 0, 0, 1, -1)) for more in (0, 1))
    start, following = begins
    return int(start) * 1000, int(following) * 1000


@lru_cache(maxsize=1)
def _of_process(pid: int) -> UniqueIds:
    # Java uses the hash of a class loader here
    tells_apart = secrets.randbits(32) - (1 << 31)
    return UniqueIds(_packed(local_address()), pid, tells_apart, month_bounds)


def _packed(address: str) -> str:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.inet_ntop(family, socket.inet_pton(family, address.partition("%")[0]))
