"""What both ways to consume have in common: a listener, threads that call it, what it answers.

Source: `ConsumeMessageService`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Protocol

from rmqfast._native import MessageView
from rmqfast.client.consumer.hooks import (
    CONSUME_CONTEXT_TYPE,
    ConsumeContext,
    ConsumeHooks,
)
from rmqfast.client.consumer.send_back import SendBack
from rmqfast.client.instance.namespaces import RETRY_PREFIX, unwrap
from rmqfast.client.push.consume_status import AGAIN, DONE
from rmqfast.client.push.counters import ConsumeCounters
from rmqfast.client.push.options import PushOptions, PushTimings
from rmqfast.client.push.process_queue import MessageRun, ProcessQueue
from rmqfast.client.trace import ConsumeReturnType
from rmqfast.logs import logger_of
from rmqfast.message import MessageQueue
from rmqfast.system import monotonic

_log = logger_of(__name__)
_RETRY_TOPIC = "RETRY_TOPIC"


class UpdatesOffsets(Protocol):
    """Where offsets go: an `OffsetStore`."""

    def update_offset(self, queue: MessageQueue, offset: int, *, increase_only: bool = ...) -> None:
        """Notes where the group goes on."""


class Later(Protocol):
    """Does work later: a `Scheduler`."""

    def later(self, delay_seconds: float, work: Callable[[], object]) -> Any:
        """Has work done once, after some seconds."""


class ConsumeService(ABC):
    """Has messages consumed by a listener."""

    def __init__(
        self,
        group: str,
        listener: Callable[..., Any],
        *,
        options: PushOptions,
        timings: PushTimings,
        offsets: UpdatesOffsets,
        send_back: SendBack,
        counters: ConsumeCounters,
        scheduler: Later,
        namespace: str = "",
        clock: Callable[[], float] = monotonic,
        on_done: Callable[[ProcessQueue], object] = lambda _: None,
        hooks: ConsumeHooks | None = None,
    ) -> None:
        self._group, self._listener, self._options, self._timings = group, listener, options, timings
        self._offsets, self._send_back, self._counters, self._scheduler = offsets, send_back, counters, scheduler
        self._namespace, self._clock, self._on_done = namespace, clock, on_done
        self._retry_topic = RETRY_PREFIX + group
        # hooks without any are false, and may get some while the consumer runs
        self._hooks = ConsumeHooks() if hooks is None else hooks

    @abstractmethod
    def start(self) -> None:
        """Starts the threads."""

    @abstractmethod
    def shutdown(self, timeout: float) -> None:
        """Ends the threads."""

    @abstractmethod
    def submit(self, runs: Sequence[MessageRun], process_queue: ProcessQueue, queue: MessageQueue) -> None:
        """Has messages consumed that were put into a process queue.

        Source: `ConsumeMessageService.submitConsumeRequest`.
        """

    @abstractmethod
    def consume_directly(self, message: MessageView, broker_name: str | None) -> dict[str, Any]:
        """Has a message consumed now, without any effect on offsets: the members of `ConsumeMessageDirectlyResult`.

        Source: `ConsumeMessageService.consumeMessageDirectly`.
        """

    @abstractmethod
    def new_process_queue(self) -> ProcessQueue:
        """What is kept of a queue."""

    def _shown(self, messages: tuple[MessageView, ...], topic: str) -> tuple[MessageView, ...]:
        """Messages as the listener sees them: those of the retry topic with the topic that they had at first.

        Source: `DefaultMQPushConsumerImpl.resetRetryAndNamespace`.
        """
        return messages if topic != self._retry_topic else tuple([self._with_first_topic(each) for each in messages])

    def _with_first_topic(self, message: MessageView) -> MessageView:
        topic = message.property(_RETRY_TOPIC)
        return message if topic is None else message.seen_as(topic=unwrap(self._namespace, topic))

    def _call(self, messages: tuple[MessageView, ...], context: Any, queue: MessageQueue, kind: type[StrEnum]) -> Any:
        """What the listener answers; `None` where it raises, or answers anything else, which is logged."""
        if self._hooks:
            return self._call_with_hooks(messages, context, queue, kind)
        try:
            return self._status(self._listener(messages, context), messages, queue, kind)
        except BaseException:  # noqa: BLE001 - also SystemExit: a message is done when the listener says so
            self._log_failure(messages, queue)
            return None

    def _call_with_hooks(
        self, messages: tuple[MessageView, ...], context: Any, queue: MessageQueue, kind: type[StrEnum]
    ) -> Any:
        """As `_call`; hooks are told before and after."""
        call = ConsumeContext(self._group, messages, queue, self._namespace)
        self._hooks.before(call)
        began, status = self._clock(), None
        try:
            status = self._status(self._listener(messages, context), messages, queue, kind)
        except BaseException as error:  # noqa: BLE001 - as in `_call`
            self._log_failure(messages, queue)
            call.error = error
        is_late = self._clock() - began >= self._options.consume_timeout * 60
        call.props[CONSUME_CONTEXT_TYPE] = _return_type(status, call.error, is_late=is_late).value
        call.is_success = status in DONE
        call.status = str(AGAIN[kind] if status is None else status)
        self._hooks.after(call)
        return status

    def _status(
        self, answer: object, messages: tuple[MessageView, ...], queue: MessageQueue, kind: type[StrEnum]
    ) -> StrEnum | None:
        """What a listener answered; `None` where that is no status, which is logged."""
        if type(answer) is kind:
            return answer
        _log.error(
            "group %s, %s: the listener's answer to message %s: expected a %s, got %r",
            self._group,
            queue,
            messages[0].msg_id,
            kind.__name__,
            answer,
        )
        return None

    def _log_failure(self, messages: tuple[MessageView, ...], queue: MessageQueue) -> None:
        _log.exception("group %s, %s: the listener failed with message %s", self._group, queue, messages[0].msg_id)

    def _direct(
        self, message: MessageView, context: Any, results: dict[Any, str], kind: type[StrEnum]
    ) -> dict[str, Any]:
        """Calls the listener with one message, and says how that ended."""
        (shown,) = self._shown((message,), message.topic)
        began, result, remark = self._clock(), "CR_RETURN_NULL", None
        try:
            status = self._listener((shown,), context)
            result = results[status] if type(status) is kind else "CR_RETURN_NULL"
        except BaseException as error:  # noqa: BLE001 - who asks is told
            result, remark = "CR_THROW_EXCEPTION", f"{type(error).__name__}: {error}"
            _log.warning("group %s: message %s, consumed directly: %s", self._group, message.msg_id, remark)
        spent = int((self._clock() - began) * 1000)
        return {"autoCommit": True, "consumeResult": result, "remark": remark, "spentTimeMills": spent}


def _return_type(status: StrEnum | None, error: BaseException | None, *, is_late: bool) -> ConsumeReturnType:
    """Source: `ConsumeMessageConcurrentlyService.ConsumeRequest.run`, and that of the orderly one."""
    if status is None:
        return ConsumeReturnType.RETURNNULL if error is None else ConsumeReturnType.EXCEPTION
    if is_late:
        return ConsumeReturnType.TIME_OUT
    return ConsumeReturnType.FAILED if status in AGAIN.values() else ConsumeReturnType.SUCCESS
