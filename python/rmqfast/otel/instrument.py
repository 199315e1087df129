"""Registers the hooks that create a client's spans.

Source: the OpenTracing hooks of `DefaultMQProducer` and `DefaultMQPushConsumer`, with OpenTelemetry in their place;
`SendMessageOpenTracingHookImpl`, `EndTransactionOpenTracingHookImpl`, `ConsumeMessageOpenTracingHookImpl`.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING
from weakref import WeakSet

from opentelemetry.propagate import get_global_textmap
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import TracerProvider, get_tracer

from rmqfast.client.consumer.active_consumer import ActiveConsumer
from rmqfast.client.producer import Producer, TransactionProducer
from rmqfast.client.push import PushConsumer
from rmqfast.errors import ArgumentError
from rmqfast.otel.spans import Client, ConsumeSpans, EndTransactionSpans, Operation, PublishSpans, TracedClient
from rmqfast.threads import new_lock

if TYPE_CHECKING:
    from rmqfast import aio

_SCHEMA = "https://opentelemetry.io/schemas/1.37.0"
_lock = new_lock()
#: Weak references, so that a client can be garbage-collected.
_instrumented: WeakSet[Client] = WeakSet()


def instrument(
    client: Client | aio.Producer | aio.PushConsumer | aio.PullConsumer | aio.LitePullConsumer,
    tracer_provider: TracerProvider | None = None,
    *,
    propagator: TextMapPropagator | None = None,
) -> None:
    """Makes a client report its messages to OpenTelemetry. A second call does nothing.

    A producer creates a span `<topic> publish` for each attempt to send, and passes its context on in message
    properties (`traceparent`). A transaction producer adds a child span `<topic> commit`, `<topic> rollback` or
    `<topic> unknown` when the state is known, also after a check by the broker. A push consumer creates a span
    `<topic> process` around each call of its listener: for one message a child of the producer's span, for several
    messages with links. A pulling consumer creates a span `<topic> receive` with links. Rows of an Arrow table carry
    the context only in their `properties` column.

    Args:
        client: A producer or a consumer, started or not, also of `rmqfast.aio`; an `async def` listener runs within
            its span.
        tracer_provider: Receives the spans. Default: the global one.
        propagator: Writes contexts into properties. Default: the global one.

    Raises:
        ArgumentError: The object is not such a client.

    Example:
        >>> import rmqfast
        >>> from rmqfast.client.producer import Producer
        >>> from opentelemetry.sdk.trace import TracerProvider
        >>> from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        >>> from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
        >>> spans, provider = InMemorySpanExporter(), TracerProvider()
        >>> provider.add_span_processor(SimpleSpanProcessor(spans))
        >>> with rmqfast.EmbeddedCluster() as cluster, Producer("shop", name_server=cluster.name_server) as producer:
        ...     instrument(producer, provider)
        ...     result = producer.send(rmqfast.Message("orders", b"paid"))
        >>> [span.name for span in spans.get_finished_spans()]
        ['orders publish']
    """
    # A client of rmqfast.aio delegates to a blocking client.
    client = getattr(client, "_twin", client)
    if not isinstance(client, Producer | PushConsumer | ActiveConsumer):
        raise ArgumentError(f"client: expected a producer or a consumer, got {type(client).__name__}")
    with _lock:
        # A second registration would create every span twice.
        if client in _instrumented:
            return
        _instrumented.add(client)
    traced, tracer = TracedClient(client), get_tracer("rmqfast", _version(), tracer_provider, _SCHEMA)
    propagates = propagator or get_global_textmap()
    if isinstance(client, Producer):
        client.register_send_hook(PublishSpans(tracer, propagates, traced))
        if isinstance(client, TransactionProducer):
            ends = EndTransactionSpans(tracer, propagates, traced)
            client.register_send_hook(ends)
            client.register_end_transaction_hook(ends)
        return
    operation = Operation.PROCESS if isinstance(client, PushConsumer) else Operation.RECEIVE
    client.register_consume_hook(ConsumeSpans(tracer, propagates, traced, operation))


def _version() -> str | None:
    try:
        return version("rmqfast")
    except PackageNotFoundError:  # a checkout that is not installed
        return None
