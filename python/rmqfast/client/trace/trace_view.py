"""Finds the traces of one message in messages of the trace topic.

Source: RocketMQ's `TraceView`, `TraceContext`, `TraceBean`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from rmqfast.client.trace.trace_data import ConsumeReturnType, MessageType, TraceContext, TraceType, decode_trace
from rmqfast.errors import CorruptError
from rmqfast.logs import logger_of

_log = logger_of(__name__)
_RETURN_TYPES = tuple(ConsumeReturnType)


class TraceMessage(Protocol):
    """A message of the trace topic."""

    @property
    def body(self) -> bytes: ...

    @property
    def born_host(self) -> str: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceView:
    """One step of a message. A field that this kind of step does not have is None.

    Attributes:
        trace_type: The kind of the step.
        message_id: The producer's message id.
        group: The producer's or consumer's group; None for consumers of 4.9.3 and older.
        client_host: The address of the client.
        timestamp: Time in milliseconds since 1970; 0 for consumers of 4.9.2 and older.
        cost_time: Duration in milliseconds per message.
        is_success: Whether the step succeeded.
        topic: The topic.
        tags: The tag.
        keys: The keys, separated by spaces.
        store_host: Address of the broker.
        offset_msg_id: The broker's id of the message.
        region_id: The broker's region.
        message_type: The kind of the sent message.
        body_length: Bytes of the body as sent, after compression.
        request_id: Id that `SUB_BEFORE` and `SUB_AFTER` of one call of a listener share.
        retry_times: Number of earlier failed consumptions.
        return_type: The result of the listener's call.
        transaction_id: The id of the transaction.
        transaction_state: The state of the transaction.
        from_transaction_check: Whether a broker checked the transaction.
    """

    trace_type: TraceType
    message_id: str
    group: str | None
    client_host: str
    timestamp: int
    cost_time: int | None = None
    is_success: bool | None = None
    topic: str | None = None
    tags: str | None = None
    keys: str | None = None
    store_host: str | None = None
    offset_msg_id: str | None = None
    region_id: str | None = None
    message_type: MessageType | None = None
    body_length: int | None = None
    request_id: str | None = None
    retry_times: int | None = None
    return_type: ConsumeReturnType | None = None
    transaction_id: str | None = None
    transaction_state: str | None = None
    from_transaction_check: bool | None = None

    @property
    def status(self) -> str | None:
        """`success` or `failed`, as in mqadmin. None for a step that has not ended."""
        return None if self.is_success is None else "success" if self.is_success else "failed"


def trace_views(message_id: str, messages: Iterable[TraceMessage]) -> list[TraceView]:
    """Returns the steps of one message in order of time.

    A trace whose body does not decompress is skipped with a warning, because anybody can send to the trace topic.

    Args:
        message_id: The producer's message id.
        messages: Messages of the trace topic.
    """
    contexts = [
        (context, _host(message.born_host))
        for message in messages
        for context in decode_trace(_body(message_id, message).decode("utf-8", "replace"))
        if message_id in (context.beans[0].msg_id or "").split(",") or context.beans[0].msg_id == message_id
    ]
    groups = {each.request_id: each.group_name for each, _ in contexts if each.trace_type is TraceType.SUB_BEFORE}
    for context, _ in contexts:
        if context.trace_type is TraceType.SUB_AFTER:
            context.group_name = context.group_name or groups.get(context.request_id)
    return sorted((_view(message_id, each, host) for each, host in contexts), key=_when)


def _body(message_id: str, message: TraceMessage) -> bytes:
    try:
        return message.body
    except CorruptError as error:
        _log.warning("a trace of message %s is left out: %s", message_id, error)
        return b""


def _when(view: TraceView) -> tuple[int, int]:
    return view.timestamp, _ORDER[view.trace_type]


def _view(message_id: str, context: TraceContext, client_host: str) -> TraceView:
    view = TraceView(
        trace_type=context.trace_type,
        message_id=message_id,
        group=_text_or_none(context.group_name),
        client_host=client_host,
        timestamp=context.timestamp,
        keys=_text_or_none(context.beans[0].keys),
    )
    return _FURTHER[context.trace_type](view, context)


def _pub(view: TraceView, context: TraceContext) -> TraceView:
    return replace(
        _of_message(view, context),
        cost_time=context.cost_time,
        is_success=context.is_success,
        offset_msg_id=_text_or_none(context.beans[0].offset_msg_id),
        body_length=context.beans[0].body_length,
    )


def _sub_before(view: TraceView, context: TraceContext) -> TraceView:
    return replace(
        view,
        region_id=_text_or_none(context.region_id),
        request_id=context.request_id,
        retry_times=context.beans[0].retry_times,
    )


def _sub_after(view: TraceView, context: TraceContext) -> TraceView:
    code = context.context_code
    return replace(
        view,
        cost_time=context.cost_time,
        is_success=context.is_success,
        request_id=context.request_id,
        return_type=_RETURN_TYPES[code] if 0 <= code < len(_RETURN_TYPES) else None,
    )


def _end_transaction(view: TraceView, context: TraceContext) -> TraceView:
    bean = context.beans[0]
    return replace(
        _of_message(view, context),
        transaction_id=_text_or_none(bean.transaction_id),
        transaction_state=bean.transaction_state,
        from_transaction_check=bean.from_transaction_check,
    )


def _of_message(view: TraceView, context: TraceContext) -> TraceView:
    bean = context.beans[0]
    return replace(
        view,
        topic=_text_or_none(bean.topic),
        tags=_text_or_none(bean.tags),
        store_host=_text_or_none(bean.store_host),
        region_id=_text_or_none(context.region_id),
        message_type=bean.msg_type,
    )


def _text_or_none(text: str | None) -> str | None:
    return None if text in {"", "null"} else text


def _host(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")


_FURTHER = {
    TraceType.PUB: _pub,
    TraceType.SUB_BEFORE: _sub_before,
    TraceType.SUB_AFTER: _sub_after,
    TraceType.END_TRANSACTION: _end_transaction,
}
#: The order of steps with equal times.
_ORDER = {TraceType.PUB: 0, TraceType.END_TRANSACTION: 1, TraceType.SUB_BEFORE: 2, TraceType.SUB_AFTER: 3}
