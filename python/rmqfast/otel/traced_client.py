"""The client that spans name; it may be dropped before they end."""

from __future__ import annotations

from typing import Protocol
from weakref import ref


class Named(Protocol):
    """A client, which has a name once it is started."""

    @property
    def client_id(self) -> str:
        """What brokers know it as."""


class TracedClient:
    """A client whose hooks make spans: they go on where the application drops it, and do not keep it from that.

    Attributes:
        consumption_model: Whether members of its group share the messages, as the conventions have it.
    """

    def __init__(self, client: Named) -> None:
        self._client, self._client_id = ref(client), ""
        options = getattr(client, "options", None)
        self.consumption_model: str = str(getattr(options, "message_model", "CLUSTERING")).lower()

    @property
    def client_id(self) -> str:
        """What brokers know it as; of a client that was dropped, as far as it was asked before."""
        client = self._client()
        if client is not None:
            self._client_id = client.client_id
        return self._client_id
