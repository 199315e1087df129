"""A broker that may be read from."""

from __future__ import annotations

from typing import NamedTuple


class FoundBroker(NamedTuple):
    """A broker that may be read from.

    Attributes:
        address: `host:port`.
        is_slave: Whether it is no master.
        version: The ordinal of its release, 0 until a heartbeat was answered.
    """

    address: str
    is_slave: bool
    version: int
