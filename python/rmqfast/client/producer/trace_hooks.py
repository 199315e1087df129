"""Hooks that trace sent messages and transactions.

Source: `SendMessageTraceHookImpl`, `EndTransactionTraceHookImpl`.
"""

from __future__ import annotations

import time

from rmqfast.client.instance.namespaces import without_namespace
from rmqfast.client.producer.hooks import EndTransactionContext, SendContext
from rmqfast.client.producer.send_result import DEFAULT_REGION, SendStatus
from rmqfast.client.trace import AsyncTraceDispatcher, MessageType, TraceBean, TraceContext, TraceType

_NOTE = "trace"


class SendTraceHook:
    """A `SendHook` that sends traces of stored messages."""

    name = "SendMessageTraceHook"

    def __init__(self, dispatcher: AsyncTraceDispatcher) -> None:
        self._dispatcher = dispatcher

    def before(self, context: SendContext) -> None:
        topic = without_namespace(context.queue.topic)
        if topic == self._dispatcher.topic:
            return
        # as in Java, a batch has neither tag nor keys
        message = context.messages[0] if len(context.messages) == 1 else None
        bean = TraceBean(
            topic=topic,
            tags=None if message is None else message.tags,
            keys=None if message is None else message.keys,
            store_host=context.broker_address,
            body_length=context.body_length,
            msg_type=context.message_type,
        )
        context.notes[_NOTE] = TraceContext(
            trace_type=TraceType.PUB,
            beans=[bean],
            timestamp=_now(),
            group_name=without_namespace(context.producer_group),
        )

    def after(self, context: SendContext) -> None:
        """Traces a send. As in Java, a send without a result is not traced."""
        trace, result = context.notes.get(_NOTE), context.result
        if trace is None or result is None or not result.is_traced:
            return
        (bean,) = trace.beans
        trace.cost_time = _now() - trace.timestamp
        trace.is_success = result.status is SendStatus.SEND_OK
        trace.region_id = result.region_id
        bean.msg_id, bean.offset_msg_id = result.msg_id, result.offset_msg_id
        self._dispatcher.append(trace)


class EndTransactionTraceHook:
    """An `EndTransactionHook` that sends traces of transactions."""

    name = "EndTransactionTraceHook"

    def __init__(self, dispatcher: AsyncTraceDispatcher) -> None:
        self._dispatcher = dispatcher

    def end_transaction(self, context: EndTransactionContext) -> None:
        message = context.message
        bean = TraceBean(
            topic=without_namespace(message.topic),
            msg_id=context.message_id,
            tags=message.tags,
            keys=message.keys,
            store_host=context.broker_address,
            msg_type=MessageType.TRANSACTION_COMMIT,
            transaction_id=context.transaction_id,
            transaction_state=context.state.value,
            from_transaction_check=context.is_from_check,
        )
        ended = TraceContext(
            trace_type=TraceType.END_TRANSACTION,
            beans=[bean],
            timestamp=_now(),
            region_id=message.properties.get("MSG_REGION") or DEFAULT_REGION,
            group_name=without_namespace(context.producer_group),
        )
        self._dispatcher.append(ended)


def _now() -> int:
    return int(time.time() * 1000)
