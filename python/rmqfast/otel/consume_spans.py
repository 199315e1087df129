"""Creates spans for consumed messages.

Source: `ConsumeMessageOpenTracingHookImpl`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import Token
from enum import Enum
from typing import NamedTuple

from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import (
    Link,
    Span,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.util.types import AttributeValue

from rmqfast.client.consumer import ConsumeContext, MessageView
from rmqfast.client.instance.namespaces import without_namespace
from rmqfast.otel import attributes
from rmqfast.otel.attributes import context_of
from rmqfast.otel.traced_client import TracedClient

_NOTE = "otel"


class Operation(Enum):
    """Kind of consumption: a listener processes messages, or the application receives them."""

    PROCESS = "process"
    RECEIVE = "receive"


class _OpenSpan(NamedTuple):
    span: Span
    token: Token[Context]


class ConsumeSpans:
    """A `ConsumeHook` that creates one span for all messages that are consumed together."""

    name = "OpenTelemetry"

    def __init__(
        self, tracer: Tracer, propagator: TextMapPropagator, consumer: TracedClient, operation: Operation
    ) -> None:
        self._tracer, self._propagator, self._consumer = tracer, propagator, consumer
        self._operation = operation

    def before(self, context: ConsumeContext) -> None:
        """Starts the span. Spans that this thread creates become its children."""
        topic = without_namespace(context.messages[0].topic)
        parent, links = self._origin(context.messages)
        span = self._tracer.start_span(
            f"{topic} {self._operation.value}",
            parent,
            SpanKind.CONSUMER if self._operation is Operation.PROCESS else SpanKind.CLIENT,
            self._attributes(context, topic),
            links,
        )
        # Stored in the context, not in the hook, since listeners of several threads run at once.
        context.notes[_NOTE] = _OpenSpan(span, attach(set_span_in_context(span, parent)))

    def after(self, context: ConsumeContext) -> None:
        open_span: _OpenSpan | None = context.notes.get(_NOTE)
        # The span is missing if `before` failed.
        if open_span is None:
            return
        detach(open_span.token)
        span, error = open_span.span, context.error
        if error is not None:
            span.record_exception(error)
        if not context.is_success:
            status = context.status or ""
            span.set_status(Status(StatusCode.ERROR, status if error is None else str(error)))
            span.set_attribute(attributes.ERROR_TYPE, status if error is None else type(error).__qualname__)
        span.end()

    def _origin(self, messages: Sequence[MessageView]) -> tuple[Context, list[Link]]:
        """Returns the parent of a span, and the links of the span to other spans."""
        contexts = [context_of(message, self._propagator) for message in messages]
        span_contexts = [get_current_span(each).get_span_context() for each in contexts]
        # A span has only one parent, so several messages can only be links.
        if len(contexts) == 1 and self._operation is Operation.PROCESS:
            return (contexts[0] if span_contexts[0].is_valid else get_current()), []
        return get_current(), [Link(each) for each in span_contexts if each.is_valid]

    def _attributes(self, context: ConsumeContext, topic: str) -> dict[str, AttributeValue]:
        messages, group = context.messages, without_namespace(context.consumer_group)
        first, count = messages[0], len(messages)
        single = first if count == 1 else None
        return attributes.with_value(
            {
                attributes.SYSTEM: "rocketmq",
                attributes.OPERATION_NAME: self._operation.value,
                attributes.OPERATION_TYPE: self._operation.value,
                attributes.DESTINATION: topic,
                attributes.PARTITION: str(context.queue.queue_id),
                attributes.CLIENT_ID: self._consumer.client_id,
                attributes.CONSUMER_GROUP: group,
                attributes.CLIENT_GROUP: group,
                attributes.NAMESPACE: context.namespace,
                attributes.CONSUMPTION_MODEL: self._consumer.consumption_model,
                attributes.BATCH_COUNT: count if count > 1 else None,
                attributes.MESSAGE_ID: single.msg_id if single is not None else None,
                attributes.ENVELOPE_SIZE: single.store_size if single is not None else None,
                **(attributes.of_message(single) if single is not None else {}),
                **attributes.of_broker(first.store_host),
            }
        )
