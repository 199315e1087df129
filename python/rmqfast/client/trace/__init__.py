"""Message trace: what became of a message, kept as messages of a topic of its own; Java's package `trace`."""

from rmqfast.client.trace.dispatcher import AsyncTraceDispatcher
from rmqfast.client.trace.trace_data import (
    TRACE_TOPIC,
    ConsumeReturnType,
    MessageType,
    TraceBean,
    TraceContext,
    TraceData,
    TraceType,
    decode_trace,
    encode_trace,
)
from rmqfast.client.trace.trace_view import TraceView, trace_views

__all__ = [
    "TRACE_TOPIC",
    "AsyncTraceDispatcher",
    "ConsumeReturnType",
    "MessageType",
    "TraceBean",
    "TraceContext",
    "TraceData",
    "TraceType",
    "TraceView",
    "decode_trace",
    "encode_trace",
    "trace_views",
]
