"""The client that spans name. It may be garbage-collected before its spans end."""

from __future__ import annotations

from typing import Any, TypeAlias
from weakref import ref

from rmqfast.client.consumer.active_consumer import ActiveConsumer
from rmqfast.client.producer import Producer
from rmqfast.client.push import PushConsumer

Client: TypeAlias = Producer | PushConsumer | ActiveConsumer[Any]


class TracedClient:
    """A weak reference to the client whose hooks create spans.

    `consumption_model` is `clustering` or `broadcasting`, as in the semantic conventions.
    """

    def __init__(self, client: Client) -> None:
        # Weak, since the client's hooks refer to this and would keep the client alive.
        self._client, self._client_id = ref(client), ""
        options = getattr(client, "options", None)
        self.consumption_model: str = str(getattr(options, "message_model", "CLUSTERING")).lower()

    @property
    def client_id(self) -> str:
        """Id of the client. If the client was collected, the last known id."""
        client = self._client()
        if client is not None:
            self._client_id = client.client_id
        return self._client_id
