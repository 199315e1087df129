"""Base class of the services that consume in order or in any order: calls the listener and checks its status.

Source: RocketMQ's `ConsumeMessageService`, `DefaultMQPushConsumerImpl`, `ConsumeMessageConcurrentlyService`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any, Generic, TypeVar

from rmqfast._native import MessageView
from rmqfast.client.consumer.hooks import (
    CONSUME_CONTEXT_TYPE,
    ConsumeContext,
    ConsumeHooks,
)
from rmqfast.client.consumer.offset_store import OffsetStore
from rmqfast.client.consumer.send_back import SendBack
from rmqfast.client.instance.namespaces import RETRY_PREFIX, unwrap
from rmqfast.client.pulling.pulled_queues import RunLater
from rmqfast.client.push.consume_status import AGAIN, DONE
from rmqfast.client.push.counters import ConsumeCounters
from rmqfast.client.push.options import PushOptions, PushTimings
from rmqfast.client.push.process_queue import MessageRun, ProcessQueue
from rmqfast.client.trace import ConsumeReturnType
from rmqfast.logs import logger_of
from rmqfast.message import MessageQueue
from rmqfast.system import monotonic
from rmqfast.threads import SimpleQueue, is_current, new_event, new_lock, new_thread, sleep

_log = logger_of(__name__)
_RETRY_TOPIC = "RETRY_TOPIC"


class ConsumeService(ABC):
    def __init__(
        self,
        group: str,
        listener: Callable[..., Any],
        *,
        options: PushOptions,
        timings: PushTimings,
        offsets: OffsetStore,
        send_back: SendBack,
        counters: ConsumeCounters,
        run_later: RunLater,
        namespace: str = "",
        clock: Callable[[], float] = monotonic,
        on_done: Callable[[ProcessQueue], object] = lambda _: None,
        hooks: ConsumeHooks | None = None,
    ) -> None:
        self._group, self._listener, self._options, self._timings = group, listener, options, timings
        self._offsets, self._send_back, self._counters, self._run_later = offsets, send_back, counters, run_later
        self._namespace, self._clock, self._on_done = namespace, clock, on_done
        self._retry_topic = RETRY_PREFIX + group
        # evaluated at each call: hooks may be registered while the consumer runs
        self._hooks = ConsumeHooks() if hooks is None else hooks

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def shutdown(self, timeout: float) -> None: ...

    @abstractmethod
    def submit(self, runs: Sequence[MessageRun], process_queue: ProcessQueue, queue: MessageQueue) -> None: ...

    @abstractmethod
    def consume_directly(self, message: MessageView, broker_name: str | None) -> dict[str, Any]:
        """Consumes one message now, without changing offsets. Returns the fields of `ConsumeMessageDirectlyResult`."""

    @abstractmethod
    def new_process_queue(self) -> ProcessQueue: ...

    def _with_first_topics(self, messages: tuple[MessageView, ...], topic: str) -> tuple[MessageView, ...]:
        return messages if topic != self._retry_topic else tuple([self._with_first_topic(each) for each in messages])

    def _with_first_topic(self, message: MessageView) -> MessageView:
        topic = message.property(_RETRY_TOPIC)
        return message if topic is None else message.seen_as(topic=unwrap(self._namespace, topic))

    def _call(self, messages: tuple[MessageView, ...], context: Any, queue: MessageQueue, kind: type[StrEnum]) -> Any:
        """Returns the listener's status. If the listener raises or returns no status, logs this and returns None."""
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
        (shown,) = self._with_first_topics((message,), message.topic)
        began, result, remark = self._clock(), "CR_RETURN_NULL", None
        try:
            status = self._listener((shown,), context)
            result = results[status] if type(status) is kind else "CR_RETURN_NULL"
        except BaseException as error:  # noqa: BLE001 - the error is part of the answer
            result, remark = "CR_THROW_EXCEPTION", f"{type(error).__name__}: {error}"
            _log.warning("group %s: message %s, consumed directly: %s", self._group, message.msg_id, remark)
        spent = int((self._clock() - began) * 1000)
        return {"autoCommit": True, "consumeResult": result, "remark": remark, "spentTimeMills": spent}


def _return_type(status: StrEnum | None, error: BaseException | None, *, is_late: bool) -> ConsumeReturnType:
    if status is None:
        return ConsumeReturnType.RETURNNULL if error is None else ConsumeReturnType.EXCEPTION
    if is_late:
        return ConsumeReturnType.TIME_OUT
    return ConsumeReturnType.FAILED if status in AGAIN.values() else ConsumeReturnType.SUCCESS


Task = TypeVar("Task")

#: Seconds between checks whether waiting tasks need more threads.
_LOOK = 0.002
#: Weight of the previous checks in the moving averages.
_FADES = 0.8
#: Seconds per task above which more threads pay off.
_LONG = 0.0001
#: Number of checks without waiting tasks after which checking stops.
_LAST_LOOKS = 50


class Workers(Generic[Task]):
    """Daemon threads that run tasks in the order of submission.

    While tasks take microseconds, one thread runs all of them, because more threads would compete for the GIL. While
    tasks take longer and others wait, each check doubles the active threads. Without tasks all threads sleep, and half
    as many start the next time.
    """

    def __init__(self, run: Callable[[Task], object], threads: int, name: str) -> None:
        self._run = run
        self._tasks: deque[Task] = deque()
        self._wakes: SimpleQueue[None] = SimpleQueue()
        self._busy_lock, self._is_looked_at = new_lock(), new_event()
        self._busy = self._started = 0
        self._first = 1
        self._is_stopped = False
        self._threads = [new_thread(self._work, name=f"{name}-{number}") for number in range(threads)]
        self._looker = new_thread(self._look, name=f"{name}-look")

    @property
    def waiting(self) -> int:
        return len(self._tasks)

    def start(self) -> None:
        for thread in (*self._threads, self._looker):
            thread.start()

    def submit(self, tasks: Iterable[Task]) -> None:
        if self._is_stopped:
            return
        self._tasks.extend(tasks)
        if not self._is_looked_at.is_set():
            self._is_looked_at.set()
        with self._busy_lock:
            if not self._busy:
                self._wake(min(self._first, len(self._tasks)))
                self._first = max(1, self._first // 2)

    def stop(self, timeout: float) -> bool:
        self._is_stopped = True
        self._tasks.clear()
        self._is_looked_at.set()
        for _ in self._threads:
            self._wakes.put(None)
        until = monotonic() + timeout
        for thread in self._threads:
            if thread.ident is not None and not is_current(thread):
                thread.join(max(0.0, until - monotonic()))
        return not any(thread.is_alive() for thread in self._threads if not is_current(thread))

    def _wake(self, count: int) -> None:
        count = min(count, len(self._threads) - self._busy)
        self._busy += count
        for _ in range(count):
            self._wakes.put(None)

    def _work(self) -> None:
        while not self._is_stopped:
            self._wakes.get()
            while not self._is_stopped:
                self._do_tasks()
                with self._busy_lock:
                    # under the lock, so that `submit` either sees a busy thread or wakes one
                    if not self._tasks:
                        self._busy -= 1
                        break

    def _do_tasks(self) -> None:
        tasks, run = self._tasks, self._run
        while not self._is_stopped:
            try:
                task = tasks.popleft()
            except IndexError:
                return
            # not atomic: a lost count does not matter
            self._started += 1
            try:
                run(task)
            except BaseException:  # noqa: BLE001 - a failing task must not end the thread
                _log.exception("%r failed", task)
            # otherwise the thread would keep the messages alive until its next task
            del task

    def _look(self) -> None:
        while not self._is_stopped:
            self._is_looked_at.wait()
            self._is_looked_at.clear()
            in_vain, spent, tasks = 0, 0.0, 0.0
            while in_vain < _LAST_LOOKS and not self._is_stopped:
                begun, since = self._started, monotonic()
                sleep(_LOOK)
                spent = spent * _FADES + (monotonic() - since) * self._busy
                tasks = tasks * _FADES + self._started - begun
                in_vain = 0 if self._tasks else in_vain + 1
                if self._tasks and spent > tasks * _LONG:
                    self._double()

    def _double(self) -> None:
        with self._busy_lock:
            self._wake(max(1, self._busy))
            self._first = max(1, self._busy // 2)
