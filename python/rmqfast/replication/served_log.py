"""The HA port at which a broker serves its log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, Self

from rmqfast._native import log_source


class ServedLog(NamedTuple):
    """The HA port of a broker, as its configuration describes it.

    Attributes:
        addresses: Addresses of this port, `host:port`, to try in turn.
        file_size: Size of a log file in bytes.
        waited_for: Followers for which sends wait: nobody, slaves that report positions, or every connection.
        has_tls: Whether the port uses TLS, which only rmqfast supports.
    """

    addresses: tuple[str, ...]
    file_size: int
    waited_for: Literal["nobody", "reports", "connections"]
    has_tls: bool

    @classmethod
    def of_config(cls, config: Mapping[str, str], address: str) -> Self:
        """Returns the HA port of the broker at `address`, from the configuration that it reports.

        Raises:
            ArgumentError: The configuration is malformed.
        """
        addresses, file_size, waited_for, has_tls = log_source(dict(config), address)
        return cls(tuple(addresses), file_size, waited_for, has_tls)
