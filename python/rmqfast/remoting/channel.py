"""The connection of a request, for processors that answer or ask back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from rmqfast.remoting.response import Response


class Channel(Protocol):
    """One open connection; equal to itself only."""

    @property
    def remote_address(self) -> str:
        """The peer as `ip:port`."""

    @property
    def local_address(self) -> str:
        """This end as `ip:port`."""

    @property
    def is_open(self) -> bool:
        """Whether something may still be sent."""

    def request(self, code: int, ext_fields: Mapping[str, str], body: bytes = b"", *, timeout: float = 3.0) -> Response:
        """Asks the peer and waits for its answer.

        Raises:
            RemotingTimeoutError: No answer in `timeout` seconds.
            ChannelClosedError: The connection is gone.
        """

    def send_oneway(self, code: int, ext_fields: Mapping[str, str], body: bytes = b"") -> None:
        """Sends a request that is not answered; nothing happens where the connection is gone."""

    def close(self) -> None:
        """Closes the connection."""
