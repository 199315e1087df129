"""Traces of messages that are consumed.

Source: `ConsumeMessageTraceHookImpl`.
"""

from __future__ import annotations

import time

from rmqfast._native import MessageView
from rmqfast.client.consumer.consume_hook import CONSUME_CONTEXT_TYPE, ConsumeContext
from rmqfast.client.instance.namespaces import without_namespace
from rmqfast.client.instance.ids import create_unique_id
from rmqfast.client.trace import AsyncTraceDispatcher, ConsumeReturnType, TraceBean, TraceContext, TraceType

_NOTE = "trace"
_CODES = {kind.value: code for code, kind in enumerate(ConsumeReturnType)}


class ConsumeTraceHook:
    """Has a dispatcher send traces; a `ConsumeHook`.

    Args:
        dispatcher: Sends them.

    Source: `ConsumeMessageTraceHookImpl`.
    """

    name = "ConsumeMessageTraceHook"

    def __init__(self, dispatcher: AsyncTraceDispatcher) -> None:
        self._dispatcher = dispatcher

    def before(self, context: ConsumeContext) -> None:
        """Messages are about to be consumed."""
        if without_namespace(context.queue.topic) == self._dispatcher.topic:
            return  # what reads traces would never come to an end
        traced = [message for message in context.messages if message.property("TRACE_ON") != "false"]
        if not traced:
            return
        begun = TraceContext(
            trace_type=TraceType.SUB_BEFORE,
            beans=[_bean(message) for message in traced],
            timestamp=_now(),
            region_id=traced[-1].property("MSG_REGION"),
            group_name=without_namespace(context.consumer_group),
            request_id=create_unique_id(),
        )
        context.notes[_NOTE] = begun
        self._dispatcher.append(begun)

    def after(self, context: ConsumeContext) -> None:
        """They were consumed, or are to come again."""
        begun = context.notes.get(_NOTE)
        if begun is None:
            return
        now = _now()
        ended = TraceContext(
            trace_type=TraceType.SUB_AFTER,
            beans=begun.beans,
            timestamp=now,
            region_id=begun.region_id,
            group_name=begun.group_name,
            cost_time=(now - begun.timestamp) // len(context.messages),
            is_success=context.is_success,
            request_id=begun.request_id,
            context_code=_CODES.get(context.props.get(CONSUME_CONTEXT_TYPE, ""), 0),
        )
        self._dispatcher.append(ended)


def _bean(message: MessageView) -> TraceBean:
    return TraceBean(
        topic=without_namespace(message.topic),
        msg_id=message.msg_id,
        tags=message.tags,
        keys=message.keys,
        body_length=message.store_size,
        retry_times=message.reconsume_times,
    )


def _now() -> int:
    return int(time.time() * 1000)
