"""Creates spans for messages sent.

Source: `SendMessageOpenTracingHookImpl`.
"""

from __future__ import annotations

from dataclasses import replace

from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.util.types import AttributeValue

from rmqfast.client.instance.namespaces import without_namespace
from rmqfast.client.producer import MessageType, SendContext, SendStatus
from rmqfast.otel import attributes
from rmqfast.otel.traced_client import TracedClient

_NOTE = "otel"
_TYPES = {
    MessageType.NORMAL: "normal",
    MessageType.DELAY: "delay",
    MessageType.TRANSACTION_HALF: "transaction",
    MessageType.TRANSACTION_COMMIT: "transaction",
}


class PublishSpans:
    """A `SendHook` that creates a span for each attempt to send. The messages carry the span's context."""

    name = "OpenTelemetry"

    def __init__(self, tracer: Tracer, propagator: TextMapPropagator, producer: TracedClient) -> None:
        self._tracer, self._propagator, self._producer = tracer, propagator, producer

    def before(self, context: SendContext) -> None:
        """Starts the span, and adds its context to the messages."""
        topic = without_namespace(context.queue.topic)
        span = self._tracer.start_span(
            f"{topic} publish", kind=SpanKind.PRODUCER, attributes=self._attributes(context, topic)
        )
        context.notes[_NOTE] = span
        properties: dict[str, str] = {}
        self._propagator.inject(properties, set_span_in_context(span))
        if properties and context.messages:
            context.messages = [
                replace(message, properties={**message.properties, **properties}) for message in context.messages
            ]

    def after(self, context: SendContext) -> None:
        span = span_of(context)
        if span is None:
            return
        result, error = context.result, context.error
        if result is not None:
            span.set_attribute(attributes.PARTITION, str(result.queue.queue_id))
            if result.status is not SendStatus.SEND_OK:
                span.set_status(Status(StatusCode.ERROR, result.status.value))
                span.set_attribute(attributes.ERROR_TYPE, result.status.value)
        if error is not None:
            span.record_exception(error)
            span.set_status(Status(StatusCode.ERROR, str(error)))
            span.set_attribute(attributes.ERROR_TYPE, type(error).__qualname__)
        span.end()

    def _attributes(self, context: SendContext, topic: str) -> dict[str, AttributeValue]:
        messages = context.messages
        # The id of a batch is the ids of its messages, separated by commas.
        count = len(context.unique_id.split(","))
        single = messages[0] if len(messages) == 1 else None
        return attributes.with_value(
            {
                attributes.SYSTEM: "rocketmq",
                attributes.OPERATION_NAME: "publish",
                attributes.OPERATION_TYPE: "send",
                attributes.DESTINATION: topic,
                attributes.PARTITION: str(context.queue.queue_id),
                attributes.CLIENT_ID: self._producer.client_id,
                attributes.CLIENT_GROUP: without_namespace(context.producer_group),
                attributes.NAMESPACE: context.queue.topic.removesuffix(topic).rstrip("%"),
                attributes.BATCH_COUNT: count if count > 1 else None,
                attributes.MESSAGE_ID: context.unique_id if count == 1 else None,
                attributes.BODY_SIZE: len(single.body) if single is not None else None,
                attributes.TYPE: _TYPES[context.message_type],
                attributes.DELAY_LEVEL: (single.delay_level or None) if single is not None else None,
                **(attributes.of_message(single) if single is not None else {}),
                **attributes.of_broker(context.broker_address),
            }
        )


def span_of(context: SendContext) -> Span | None:
    span: Span | None = context.notes.get(_NOTE)
    return span
