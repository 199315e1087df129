"""Where a broker serves its log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, Self

from rmqfast._native import log_source

__all__ = ["ServedLog"]


class ServedLog(NamedTuple):
    """Where a broker serves its log.

    Attributes:
        addresses: `host:port`s, which lead to the same port.
        file_size: Bytes of a file.
        waited_for: What sends wait for there: nobody, the positions that slaves report, or whoever is connected.
        has_tls: Whether the port has TLS, as one of ours may.

    Example:
        >>> config = {"haListenPort": "10912", "mappedFileSizeCommitLog": "1073741824", "brokerRole": "SYNC_MASTER"}
        >>> ServedLog.of_config(config, "10.0.0.1:10911").waited_for
        'connections'
    """

    addresses: tuple[str, ...]
    file_size: int
    waited_for: Literal["nobody", "reports", "connections"]
    has_tls: bool

    @classmethod
    def of_config(cls, config: Mapping[str, str], address: str) -> Self:
        """The log of the broker at an address, by what that says of its configuration.

        Raises:
            ArgumentError: It cannot be read.
        """
        addresses, file_size, waited_for, has_tls = log_source(dict(config), address)
        return cls(tuple(addresses), file_size, waited_for, has_tls)
