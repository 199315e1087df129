"""Hooks of consumers. They are called around each consumption, and for the messages of each pull.

Source: RocketMQ's `ConsumeMessageHook`, `ConsumeMessageContext`, `ConsumeMessageTraceHookImpl`, `FilterMessageHook`,
`DefaultLitePullConsumerImpl`, `DefaultMQPullConsumerImpl`, `FilterMessageContext`, `PullAPIWrapper`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rmqfast._native import MessageView
from rmqfast.client.instance.ids import create_unique_id
from rmqfast.client.instance.namespaces import without_namespace
from rmqfast.client.trace import AsyncTraceDispatcher, ConsumeReturnType, TraceBean, TraceContext, TraceType
from rmqfast.logs import logger_of
from rmqfast.message import MessageQueue

_log = logger_of(__name__)

#: Key of the `ConsumeReturnType` in `ConsumeContext.props`: `MixAll.CONSUME_CONTEXT_TYPE`.
CONSUME_CONTEXT_TYPE = "ConsumeContextType"
#: Status that consumers that pull report for all messages.
_CONSUMED = "CONSUME_SUCCESS"
_NOTE = "trace"
_CODES = {kind.value: code for code, kind in enumerate(ConsumeReturnType)}


@dataclass(slots=True)
class ConsumeContext:
    """The argument of a `ConsumeHook`: the messages of one consumption.

    Attributes:
        consumer_group: The group, with its namespace.
        messages: The messages as the application gets them.
        queue: Their queue, with the namespace in its topic.
        namespace: The namespace; empty if there is none.
        is_success: Whether consumption succeeded; False in `before`.
        status: The listener's status as a string; None in `before`.
        props: In `after` of a listener: `ConsumeContextType`, the name of a `ConsumeReturnType`.
        error: The exception that the listener raised.
        notes: Values that a hook stores in `before` for `after`.
    """

    consumer_group: str
    messages: Sequence[MessageView]
    queue: MessageQueue
    namespace: str = ""
    is_success: bool = False
    status: str | None = None
    props: dict[str, str] = field(default_factory=dict)
    error: BaseException | None = None
    notes: dict[str, Any] = field(default_factory=dict)


class ConsumeHook(Protocol):
    """Called before and after messages are consumed, on the thread that consumes them. Exceptions are logged.

    For consumers that pull, both methods are called when the application gets the messages.

    Example:
        >>> from rmqfast import ConsumeFromWhere, EmbeddedCluster, LitePullConsumer, Message, Producer
        >>> from rmqfast.client.lite_pull import LitePullOptions
        >>> class Counter:
        ...     name = "counter"
        ...     count = 0
        ...
        ...     def before(self, context):
        ...         self.count += len(context.messages)
        ...
        ...     def after(self, context):
        ...         pass
        >>> counter = Counter()
        >>> with EmbeddedCluster() as cluster, Producer("shop", name_server=cluster.name_server) as producer:
        ...     sent = producer.send(Message("orders", b"paid"))
        ...     first = LitePullOptions(consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
        ...     with LitePullConsumer("billing", name_server=cluster.name_server, options=first) as consumer:
        ...         consumer.register_consume_hook(counter)
        ...         consumer.subscribe("orders", "*")
        ...         messages = consumer.poll(timeout=60)
        >>> counter.count
        1
    """

    @property
    def name(self) -> str:
        """The name of the hook in logs."""

    def before(self, context: ConsumeContext) -> None:
        """Called before messages are consumed."""

    def after(self, context: ConsumeContext) -> None:
        """Called after messages were consumed, even if that failed."""


class ConsumeHooks:
    def __init__(self) -> None:
        self._hooks: tuple[ConsumeHook, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def add(self, hook: ConsumeHook) -> None:
        self._hooks = (*self._hooks, hook)
        _log.info("register consumeMessageHook Hook, %s", hook.name)

    def before(self, context: ConsumeContext) -> None:
        for hook in self._hooks:
            try:
                hook.before(context)
            except Exception:  # noqa: BLE001 - a failing hook must not stop consumption
                _log.exception("consumeMessageHook %s executeHookBefore exception", hook.name)

    def after(self, context: ConsumeContext) -> None:
        for hook in self._hooks:
            try:
                hook.after(context)
            except Exception:  # noqa: BLE001 - as above
                _log.exception("consumeMessageHook %s executeHookAfter exception", hook.name)

    def on_pull(self, group: str, messages: Sequence[MessageView], queue: MessageQueue, namespace: str) -> None:
        if not self._hooks or not messages:
            return
        context = ConsumeContext(group, messages, queue, namespace)
        self.before(context)
        context.status, context.is_success = _CONSUMED, True
        self.after(context)


class ConsumeTraceHook:
    """A `ConsumeHook` that sends traces of consumed messages."""

    name = "ConsumeMessageTraceHook"

    def __init__(self, dispatcher: AsyncTraceDispatcher) -> None:
        self._dispatcher = dispatcher

    def before(self, context: ConsumeContext) -> None:
        if without_namespace(context.queue.topic) == self._dispatcher.topic:
            # tracing a consumer of traces would never end
            return
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


@dataclass(slots=True)
class FilterContext:
    """The argument of a `FilterHook`: the messages of a pull.

    Attributes:
        consumer_group: The group, with its namespace.
        queue: Their queue, with the namespace in its topic.
        messages: The messages that match the subscription. A hook removes messages from this list.
        is_unit_mode: Whether the client belongs to a unit.
    """

    consumer_group: str
    queue: MessageQueue
    messages: list[MessageView]
    is_unit_mode: bool = False


class FilterHook(Protocol):
    """Filters the messages of a pull. Exceptions are logged."""

    @property
    def name(self) -> str:
        """The name of the hook in logs."""

    def filter(self, context: FilterContext) -> None:
        """Removes messages from `context.messages`. Removed messages count as consumed."""


class FilterHooks:
    def __init__(self) -> None:
        self._hooks: tuple[FilterHook, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def add(self, hook: FilterHook) -> None:
        self._hooks = (*self._hooks, hook)
        _log.info("register FilterMessageHook Hook, %s", hook.name)

    def filter(self, context: FilterContext) -> list[MessageView]:
        for hook in self._hooks:
            try:
                hook.filter(context)
            except Exception:  # noqa: BLE001 - a failing hook must not stop consumption
                _log.exception("execute hook error. hookName=%s", hook.name)
        return context.messages
