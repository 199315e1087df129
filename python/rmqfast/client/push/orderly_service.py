"""Consumes each queue in order, with one call of the listener at a time.

Source: RocketMQ's `ConsumeMessageOrderlyService`, `MessageQueueLock`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

from rmqfast._native import MessageView
from rmqfast.client.consumer.queue_locks import QueueLocks
from rmqfast.client.instance import Scheduler
from rmqfast.client.push.consume_service import ConsumeService, Workers
from rmqfast.client.push.consume_status import ConsumeOrderlyContext, ConsumeOrderlyStatus
from rmqfast.client.push.process_queue import MessageRun, OrderlyProcessQueue, ProcessQueue
from rmqfast.logs import logger_of
from rmqfast.message import MessageQueue
from rmqfast.threads import Lock, new_lock

_log = logger_of(__name__)

_SUCCESS = ConsumeOrderlyStatus.SUCCESS
_COMMIT, _ROLLBACK = ConsumeOrderlyStatus.COMMIT, ConsumeOrderlyStatus.ROLLBACK
_SUSPEND = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
_DIRECT_RESULTS = {_SUCCESS: "CR_SUCCESS", _COMMIT: "CR_COMMIT", _ROLLBACK: "CR_ROLLBACK", _SUSPEND: "CR_LATER"}
#: Seconds until a queue's next turn, after its turn is over or its lock was renewed.
_SOON = 0.01
#: Seconds until a queue is locked that was not locked at its turn.
_NOT_LOCKED = 0.1
#: Minimum seconds that a shutdown waits for listeners and locks, so that they do not overlap the next owner's.
_PATIENCE = 1.0
#: Minimum and maximum seconds that a queue is suspended.
_SHORTEST, _LONGEST = 0.01, 30.0


class OrderlyRequest:
    """The task that consumes one queue for a while."""

    __slots__ = ("process_queue", "queue")

    def __init__(self, process_queue: OrderlyProcessQueue, queue: MessageQueue) -> None:
        self.process_queue: Final = process_queue
        self.queue: Final = queue

    def __repr__(self) -> str:
        return f"<OrderlyRequest of {self.queue}>"


class ConsumeMessageOrderlyService(ConsumeService):
    """Calls the listener for one batch of a queue at a time, as long as this client holds the queue's broker lock."""

    locks: QueueLocks

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        threads = self._options.consume_thread_min
        self._workers: Workers[OrderlyRequest] = Workers(self.run, threads, f"rmqfast-consume-{self._group}")
        # a separate thread: a broker that does not answer must not delay heartbeats or pulls
        self._lock_timer = Scheduler(f"rmqfast-lock-{self._group}")
        self._turns: dict[MessageQueue, Lock] = {}
        self._batch = self._options.consume_message_batch_max_size
        self._is_stopped = False

    def start(self) -> None:
        self._workers.start()
        if self._options.is_clustering:
            self._lock_timer.every(self._timings.first_lock, self._timings.lock_interval, self._lock_all)

    def shutdown(self, timeout: float) -> None:
        self._is_stopped = True
        self._lock_timer.stop(_PATIENCE)
        if not self._workers.stop(max(timeout, _PATIENCE)):
            _log.warning("group %s: listeners are at work still, their queues stay locked for a while", self._group)

    def is_at_work(self, process_queue: ProcessQueue) -> bool:
        return process_queue.consume_lock.locked()

    def new_process_queue(self) -> OrderlyProcessQueue:
        return OrderlyProcessQueue()

    def submit(self, runs: Sequence[MessageRun], process_queue: ProcessQueue, queue: MessageQueue) -> None:  # noqa: ARG002
        # one request per queue is enough: it takes all messages
        if isinstance(process_queue, OrderlyProcessQueue) and process_queue.begin_consuming():
            self._workers.submit([OrderlyRequest(process_queue, queue)])

    def run(self, request: OrderlyRequest) -> None:
        """Consumes a queue until it is empty, belongs to another client, or was consumed for long enough."""
        process_queue = request.process_queue
        if process_queue.is_dropped:
            return
        # a lock per queue, because a queue that is assigned again has another process queue
        with self._turns.setdefault(request.queue, new_lock()):
            if self._is_ours(process_queue):
                began = self._clock()
                while self._consume(request, began):
                    pass
            elif not process_queue.is_dropped:
                self._lock_later(request, _NOT_LOCKED)

    def consume_directly(self, message: MessageView, broker_name: str | None) -> dict[str, Any]:
        context = ConsumeOrderlyContext(MessageQueue(message.topic, broker_name or "", message.queue_id))
        result = self._direct(message, context, _DIRECT_RESULTS, ConsumeOrderlyStatus)
        return {**result, "order": True, "autoCommit": context.auto_commit}

    def process_result(
        self,
        status: ConsumeOrderlyStatus | None,
        context: ConsumeOrderlyContext,
        request: OrderlyRequest,
        messages: tuple[MessageView, ...],
    ) -> bool:
        process_queue, offset, goes_on = request.process_queue, -1, True
        if status is _ROLLBACK and not context.auto_commit:
            process_queue.rollback()
            goes_on = False
        elif status is None or status is _SUSPEND:
            goes_on = self._dead_or_again(process_queue, messages)
            if goes_on and context.auto_commit:
                offset = process_queue.commit()
        # without auto_commit, SUCCESS commits nothing: COMMIT later does, for all messages taken
        elif context.auto_commit or status is _COMMIT:
            if status is not _SUCCESS and context.auto_commit:
                _log.warning("group %s: %s has no meaning with auto_commit: taken as SUCCESS", self._group, status)
            offset = process_queue.commit()
        if offset >= 0:
            # the offset may be lower than before, as in Java
            self._offsets.update_offset(request.queue, offset)
        self._on_done(process_queue)
        if not goes_on:
            self._again_later(request, self._suspension(context))
        return goes_on

    def _consume(self, request: OrderlyRequest, began: float) -> bool:
        """Consumes the next messages. Returns whether to continue at once."""
        process_queue, queue = request.process_queue, request.queue
        if process_queue.is_dropped or self._is_stopped:
            return False
        # the lock was lost or has expired
        if not self._is_ours(process_queue):
            self._lock_later(request, _SOON)
            return False
        # one minute, as in Java: then other queues get the thread
        if self._clock() - began > self._timings.longest_continuously:
            self._again_later(request, _SOON)
            return False
        messages = process_queue.take(self._batch)
        if not messages:
            return False
        context = ConsumeOrderlyContext(queue)
        with process_queue.consume_lock:
            # released while this thread waited for the lock
            if request.process_queue.is_dropped:
                _log.warning("group %s: %s is not consumed here any more", self._group, queue)
                return False
            started = self._clock()
            status = self._call(self._with_first_topics(messages, queue.topic), context, queue, ConsumeOrderlyStatus)
            count, is_ok = len(messages), status in {_SUCCESS, _COMMIT}
            self._counters.on_consume(
                queue.topic, ok=count * is_ok, failed=count * (not is_ok), seconds=self._clock() - started
            )
            # the release of a queue waits for this lock, and stores the offset that is set here
            return self.process_result(status, context, request, messages)

    def _is_ours(self, process_queue: OrderlyProcessQueue) -> bool:
        return not self._options.is_clustering or (process_queue.is_locked and not process_queue.is_lock_expired)

    def _dead_or_again(self, process_queue: OrderlyProcessQueue, messages: tuple[MessageView, ...]) -> bool:
        """Makes dead letters of messages that failed too often. Returns False if any message must be redelivered."""
        limit = self._options.max_reconsume_times
        most, again, is_any = sys.maxsize if limit == -1 else limit, [], False
        for message in messages:
            times = message.reconsume_times
            (shown,) = self._with_first_topics((message,), message.topic)
            # if the dead letter cannot be sent, the message is redelivered
            if times >= most and self._send_back.is_dead_letter(shown, reconsume_times=times):
                again.append(message)
            else:
                again.append(message.seen_as(reconsume_times=times + 1))
                is_any = True
        if is_any:
            process_queue.make_to_consume_again(again)
        return not is_any

    def _suspension(self, context: ConsumeOrderlyContext) -> float:
        seconds = context.suspend_current_queue_time
        if seconds == -1:
            seconds = self._options.suspend_current_queue_time_millis / 1000
        return max(_SHORTEST, min(seconds, _LONGEST))

    def _again_later(self, request: OrderlyRequest, delay: float) -> None:
        self._run_later(delay, lambda: self._workers.submit([request]))

    def _lock_later(self, request: OrderlyRequest, delay: float) -> None:

        def lock() -> None:
            if not request.process_queue.is_dropped:
                is_locked = self.locks.lock(request.queue)
                self._again_later(request, _SOON if is_locked else self._timings.lock_retry)

        self._lock_timer.later(delay, lock)

    def _lock_all(self) -> None:
        if not self._is_stopped:
            self.locks.lock_all()
