"""Creates spans for messages sent and consumed, and for the ends of transactions.

Source: RocketMQ's `SendMessageOpenTracingHookImpl`, `ConsumeMessageOpenTracingHookImpl`,
`EndTransactionOpenTracingHookImpl`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextvars import Token
from dataclasses import replace
from enum import Enum
from typing import Any, NamedTuple, TypeAlias
from weakref import ref

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
from rmqfast.client.consumer.active_consumer import ActiveConsumer
from rmqfast.client.instance.namespaces import without_namespace
from rmqfast.client.producer import (
    EndTransactionContext,
    LocalTransactionState,
    MessageType,
    Producer,
    SendContext,
    SendStatus,
)
from rmqfast.client.push import PushConsumer
from rmqfast.otel import attributes
from rmqfast.otel.attributes import context_of

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
        """Id of the client. If the client was garbage-collected, the last known id."""
        client = self._client()
        if client is not None:
            self._client_id = client.client_id
        return self._client_id


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
