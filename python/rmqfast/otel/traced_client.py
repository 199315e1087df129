"""The client named in spans; it may be garbage-collected before they end."""

from __future__ import annotations

from typing import Any, TypeAlias
from weakref import ref

from rmqfast.client.consumer.active_consumer import ActiveConsumer
from rmqfast.client.producer import Producer
from rmqfast.client.push import PushConsumer

Client: TypeAlias = Producer | PushConsumer | ActiveConsumer[Any]


class TracedClient:
    """A weak reference to a client whose hooks make spans.

    Attributes:
        consumption_model: `clustering` or `broadcasting`, by the semantic conventions.
    """

    def __init__(self, client: Client) -> None:
        # weak: hooks belong to the client, and must not keep it from being collected
        self._client, self._client_id = ref(client), ""
        options = getattr(client, "options", None)
        self.consumption_model: str = str(getattr(options, "message_model", "CLUSTERING")).lower()

    @property
    def client_id(self) -> str:
        """The client id; of a collected client, the last one known."""
        client = self._client()
        if client is not None:
            self._client_id = client.client_id
        return self._client_id
