"""What clients of asyncio have in common that are members of a group: all but the administrator's."""

from __future__ import annotations

from typing import Protocol, TypeVar

from rmqfast.aio.client import Blocking, Client


class BlockingMember(Blocking, Protocol):
    """A blocking client of a group."""

    @property
    def group(self) -> str:
        """Its group."""

    @property
    def client_id(self) -> str:
        """What brokers know it as."""


Twin = TypeVar("Twin", bound=BlockingMember)


class Member(Client[Twin]):
    """A client of a group."""

    @property
    def group(self) -> str:
        """The group, with its namespace."""
        return self._twin.group

    @property
    def client_id(self) -> str:
        """What brokers know this client as.

        Raises:
            ClientError: It is not running.
        """
        return self._twin.client_id
