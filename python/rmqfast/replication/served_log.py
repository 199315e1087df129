"""The HA port at which a broker serves its log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, Self

from rmqfast._native import log_source

__all__ = ["ServedLog"]


class ServedLog(NamedTuple):
    """The HA port of a broker, from its configuration.

    Attributes:
        addresses: `host:port`s of the same port.
        file_size: Bytes of a log file.
        waited_for: Followers that sends wait for: nobody, slaves that report positions, or each connection.
        has_tls: Whether the port uses TLS, as only rmqfast's may.
    """

    addresses: tuple[str, ...]
    file_size: int
    waited_for: Literal["nobody", "reports", "connections"]
    has_tls: bool

    @classmethod
    def of_config(cls, config: Mapping[str, str], address: str) -> Self:
        """The HA port of the broker at `address`, from the configuration that it reports.

        Raises:
            ArgumentError: It cannot be read.
        """
        addresses, file_size, waited_for, has_tls = log_source(dict(config), address)
        return cls(tuple(addresses), file_size, waited_for, has_tls)
