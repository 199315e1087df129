"""Creates spans for the ends of transactions.

Source: `EndTransactionOpenTracingHookImpl`.
"""

from __future__ import annotations

import threading

from opentelemetry.context import Context
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import Span, SpanKind, Tracer, get_current_span, set_span_in_context
from opentelemetry.util.types import AttributeValue

from rmqfast.client.instance.namespaces import without_namespace
from rmqfast.client.producer import EndTransactionContext, LocalTransactionState, MessageType, SendContext
from rmqfast.otel import attributes
from rmqfast.otel.attributes import context_of
from rmqfast.otel.publish_spans import span_of
from rmqfast.otel.traced_client import TracedClient

_OPERATIONS = {
    LocalTransactionState.COMMIT_MESSAGE: "commit",
    LocalTransactionState.ROLLBACK_MESSAGE: "rollback",
    LocalTransactionState.UNKNOWN: "unknown",
}


class EndTransactionSpans:
    """An `EndTransactionHook` and a `SendHook`. Creates a span for each end of a transaction.

    The span is a child of the half message's span.

    The span has no duration, since the broker does not answer END_TRANSACTION.
    """

    name = "OpenTelemetry"

    def __init__(self, tracer: Tracer, propagator: TextMapPropagator, producer: TracedClient) -> None:
        self._tracer, self._propagator, self._producer = tracer, propagator, producer
        self._half = _HalfMessage()

    def before(self, context: SendContext) -> None:
        """Does nothing, since `PublishSpans` creates the spans of sends."""

    def after(self, context: SendContext) -> None:
        """Records the half message that this thread has sent. The same thread ends the transaction."""
        if context.message_type is MessageType.TRANSACTION_HALF:
            self._half.unique_id, self._half.span = context.unique_id, span_of(context)

    def end_transaction(self, context: EndTransactionContext) -> None:
        """Creates the span of a commit, of a rollback, or of a state that is unknown."""
        topic, operation = without_namespace(context.message.topic), _OPERATIONS[context.state]
        span = self._tracer.start_span(
            f"{topic} {operation}",
            self._context_of_checked(context) if context.is_from_check else self._context_of_own(context),
            SpanKind.CLIENT,
            self._attributes(context, topic, operation),
        )
        span.end()

    def _context_of_own(self, context: EndTransactionContext) -> Context | None:
        half, span = self._half, self._half.span
        # Reset, since this thread may send other messages next, whose parent it must not become.
        half.span = None
        return None if span is None or half.unique_id != context.message_id else set_span_in_context(span)

    def _context_of_checked(self, context: EndTransactionContext) -> Context | None:
        parent = context_of(context.message, self._propagator)
        return parent if get_current_span(parent).get_span_context().is_valid else None

    def _attributes(self, context: EndTransactionContext, topic: str, operation: str) -> dict[str, AttributeValue]:
        group = without_namespace(context.producer_group)
        return attributes.with_value(
            {
                attributes.SYSTEM: "rocketmq",
                attributes.OPERATION_NAME: operation,
                attributes.OPERATION_TYPE: "settle",
                attributes.DESTINATION: topic,
                attributes.CLIENT_ID: self._producer.client_id,
                attributes.CLIENT_GROUP: group,
                attributes.NAMESPACE: context.producer_group.removesuffix(group).rstrip("%"),
                attributes.MESSAGE_ID: context.message_id,
                attributes.TYPE: "transaction",
                **attributes.of_message(context.message),
                **attributes.of_broker(context.broker_address),
            }
        )


class _HalfMessage(threading.local):
    unique_id = ""
    span: Span | None = None
