"""Message traces: the steps of each message, which clients store in a trace topic. Java's package `trace`."""

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
