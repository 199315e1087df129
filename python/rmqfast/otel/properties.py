"""A message's properties as what contexts are read from."""

from __future__ import annotations

from opentelemetry.context import Context
from opentelemetry.propagators.textmap import Getter, TextMapPropagator

from rmqfast.client.consumer import MessageView


def context_of(message: MessageView, propagator: TextMapPropagator) -> Context:
    """The context that a message brought along; an empty one where it has none."""
    return propagator.extract(message, Context(), _PROPERTIES)


class _Properties(Getter[MessageView]):
    """Reads from properties."""

    def get(self, carrier: MessageView, key: str) -> list[str] | None:
        value = carrier.property(key)
        return None if value is None else [value]

    def keys(self, carrier: MessageView) -> list[str]:
        return list(carrier.properties)


_PROPERTIES = _Properties()
