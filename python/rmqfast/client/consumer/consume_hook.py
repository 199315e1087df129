"""What is told of messages that are consumed: before, and after.

Source: `ConsumeMessageHook`, `ConsumeMessageContext`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rmqfast._native import MessageView
from rmqfast.message import MessageQueue

_log = logging.getLogger(__name__)

#: Under which name `ConsumeContext.props` has a `ConsumeReturnType`: `MixAll.CONSUME_CONTEXT_TYPE`.
CONSUME_CONTEXT_TYPE = "ConsumeContextType"
#: What consumers that pull by themselves say of all messages.
_CONSUMED = "CONSUME_SUCCESS"


@dataclass(slots=True)
class ConsumeContext:
    """Messages that are consumed at once.

    Attributes:
        consumer_group: The group, with its namespace.
        messages: What is consumed, as the application sees it.
        queue: Where it comes from, its topic with its namespace.
        namespace: The namespace, empty for none.
        is_success: Whether the messages are done; False before.
        status: What the application answered, as text; `None` before.
        props: `ConsumeContextType` after, where a listener was called: the name of a `ConsumeReturnType`.
        error: What the listener raised.
        notes: What a hook wants to remember until after.

    Source: `ConsumeMessageContext`.
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
    """Is told of messages before and after they are consumed, on the thread that does it; what it raises is logged.

    Where an application pulls by itself, both are told when it gets the messages.

    Source: `ConsumeMessageHook`.
    """

    @property
    def name(self) -> str:
        """What it is called in logs."""

    def before(self, context: ConsumeContext) -> None:
        """Messages are about to be consumed."""

    def after(self, context: ConsumeContext) -> None:
        """They were consumed, or are to come again."""


class ConsumeHooks:
    """All hooks of a consumer."""

    def __init__(self) -> None:
        self._hooks: tuple[ConsumeHook, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def add(self, hook: ConsumeHook) -> None:
        """Adds one; it is told last."""
        self._hooks = (*self._hooks, hook)
        _log.info("register consumeMessageHook Hook, %s", hook.name)

    def before(self, context: ConsumeContext) -> None:
        """Tells all of them that messages are about to be consumed."""
        for hook in self._hooks:
            try:
                hook.before(context)
            except Exception:  # noqa: BLE001 - a hook does not keep messages from being consumed
                _log.exception("consumeMessageHook %s executeHookBefore exception", hook.name)

    def after(self, context: ConsumeContext) -> None:
        """Tells all of them how that ended."""
        for hook in self._hooks:
            try:
                hook.after(context)
            except Exception:  # noqa: BLE001 - as above
                _log.exception("consumeMessageHook %s executeHookAfter exception", hook.name)

    def pulled(self, group: str, messages: Sequence[MessageView], queue: MessageQueue, namespace: str) -> None:
        """Tells all of them of messages that an application gets because it pulls: they count as consumed.

        Source: `DefaultLitePullConsumerImpl.pullSyncImpl`, `DefaultMQPullConsumerImpl.pullSyncImpl`.
        """
        if not self._hooks or not messages:
            return
        context = ConsumeContext(group, messages, queue, namespace)
        self.before(context)
        context.status, context.is_success = _CONSUMED, True
        self.after(context)
