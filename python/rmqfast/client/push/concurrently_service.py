"""Consumes messages in any order, on several threads.

Source: RocketMQ's `ConsumeMessageConcurrentlyService`, `ProcessQueue`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rmqfast._native import MessageView
from rmqfast.client.push.consume_service import ConsumeService, Workers
from rmqfast.client.push.consume_status import (
    ALL_ACKNOWLEDGED,
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
)
from rmqfast.client.push.process_queue import MessageRun, ProcessQueue
from rmqfast.logs import logger_of
from rmqfast.message import MessageQueue
from rmqfast.threads import new_thread, thread_ident

_log = logger_of(__name__)

_SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
_DIRECT_RESULTS = {_SUCCESS: "CR_SUCCESS", ConsumeConcurrentlyStatus.RECONSUME_LATER: "CR_LATER"}
#: Maximum number of expired messages of a queue that are sent back in one round.
_MOST_EXPIRED = 16
#: The delay level of a message whose listener takes too long.
_LEVEL_OF_EXPIRED = 3


class ConsumeRequest:
    """The messages of one call to the listener."""

    __slots__ = ("indexes", "messages", "process_queue", "queue", "run", "started")

    def __init__(
        self,
        process_queue: ProcessQueue,
        queue: MessageQueue,
        run: MessageRun,
        indexes: Sequence[int],
        messages: tuple[MessageView, ...],
    ) -> None:
        self.process_queue: Final = process_queue
        self.queue: Final = queue
        self.run: Final = run
        self.indexes: Final = indexes
        self.messages: tuple[MessageView, ...] = messages
        self.started: float | None = None

    def __repr__(self) -> str:
        return f"<ConsumeRequest of {len(self.messages)} messages of {self.queue}>"


class ConsumeMessageConcurrentlyService(ConsumeService):
    """Calls the listener on several threads, with messages in any order."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        # the minimum is also the maximum: Java's pool never grows either, because its task queue is unlimited
        threads = self._options.consume_thread_min
        self._workers: Workers[ConsumeRequest] = Workers(self.run, threads, f"rmqfast-consume-{self._group}")
        self._running: dict[int, ConsumeRequest] = {}
        self._batch = self._options.consume_message_batch_max_size

    def start(self) -> None:
        self._workers.start()

    def shutdown(self, timeout: float) -> None:
        if not self._workers.stop(timeout) and timeout:
            _log.warning("group %s: listeners are still at work after %.1f s", self._group, timeout)

    def new_process_queue(self) -> ProcessQueue:
        return ProcessQueue()

    def submit(self, runs: Sequence[MessageRun], process_queue: ProcessQueue, queue: MessageQueue) -> None:
        batch = self._batch
        requests = []
        for run in runs:
            messages = run.messages
            count = len(messages)
            # the usual case: no copy is needed
            if count <= batch:
                requests.append(ConsumeRequest(process_queue, queue, run, range(count), messages))
                continue
            for start in range(0, count, batch):
                part = messages[start : start + batch]
                indexes = range(start, start + len(part))
                requests.append(ConsumeRequest(process_queue, queue, run, indexes, part))
        self._workers.submit(requests)

    def run(self, request: ConsumeRequest) -> None:
        process_queue, queue = request.process_queue, request.queue
        # the queue belongs to another member now, which also gets these messages
        if process_queue.is_dropped:
            return
        # a listener sees the original topic of a retried message
        if queue.topic == self._retry_topic:
            request.messages = self._with_first_topics(request.messages, queue.topic)
        context = ConsumeConcurrentlyContext(queue)
        thread = thread_ident()
        # `clean_expired` measures from here
        request.started = began = self._clock()
        self._running[thread] = request
        try:
            status = self._call(request.messages, context, queue, ConsumeConcurrentlyStatus)
        finally:
            # before the result is processed: the listener has returned
            del self._running[thread]
        if request.process_queue.is_dropped:
            _log.warning("group %s: %s is not consumed here any more: the result is ignored", self._group, queue)
            return
        self.process_result(status, context, request, self._clock() - began)

    def process_result(
        self,
        status: ConsumeConcurrentlyStatus | None,
        context: ConsumeConcurrentlyContext,
        request: ConsumeRequest,
        seconds: float = 0.0,
    ) -> None:
        count, done = len(request.messages), request.indexes
        # redelivers all messages of the call
        if status is not _SUCCESS:
            acknowledged = 0
        else:
            acknowledged = (
                count if context.ack_index == ALL_ACKNOWLEDGED else _count_acknowledged(context.ack_index, count)
            )
        self._counters.on_consume(request.queue.topic, ok=acknowledged, failed=count - acknowledged, seconds=seconds)
        if acknowledged < count:
            done = self._give_back(request, acknowledged, context.delay_level_when_next_consume)
        process_queue = request.process_queue
        offset = process_queue.remove(request.run, done)
        if offset >= 0 and not process_queue.is_dropped:
            # another thread may have stored a higher offset meanwhile, which then stays
            self._offsets.update_offset(request.queue, offset, increase_only=True)
        self._on_done(process_queue)

    def clean_expired(self, process_queue: ProcessQueue, queue: MessageQueue) -> None:
        """Sends back messages whose listener runs too long, if the queue's offset cannot advance because of them."""
        timeout = self._options.consume_timeout * 60
        for _ in range(min(process_queue.count, _MOST_EXPIRED)):
            first = process_queue.first()
            if first is None or not self._is_expired(*first, self._clock() - timeout):
                return
            run, index = first
            messages = run.messages[index : index + 1]
            if not messages:
                # its listener has just finished
                continue
            (message,) = self._with_first_topics(messages, queue.topic)
            _log.warning("group %s, %s: the time of message %s is over", self._group, queue, message.msg_id)
            # tried again in the next round
            if not self._send_back.is_sent(message, _LEVEL_OF_EXPIRED, None):
                return
            # unless the listener finished meanwhile
            if process_queue.first() == first:
                process_queue.remove(run, [index])
                self._on_done(process_queue)

    def clean_all(self, process_queues: Mapping[MessageQueue, ProcessQueue]) -> None:
        """Calls `clean_expired` for all queues on another thread, if any listener runs too long."""
        before = self._clock() - self._options.consume_timeout * 60
        if not any((request.started or before) < before for request in list(self._running.values())):
            return

        def clean() -> None:
            for queue, process_queue in process_queues.items():
                self.clean_expired(process_queue, queue)

        new_thread(clean, name=f"rmqfast-clean-expired-{self._group}").start()

    def consume_directly(self, message: MessageView, broker_name: str | None) -> dict[str, Any]:
        context = ConsumeConcurrentlyContext(MessageQueue(message.topic, broker_name or "", message.queue_id))
        result = self._direct(message, context, _DIRECT_RESULTS, ConsumeConcurrentlyStatus)
        return {"order": False, **result}

    def _give_back(self, request: ConsumeRequest, first: int, delay_level: object) -> list[int]:
        """Sends back the messages from position `first` on. Returns the indexes of all messages that are done."""
        indexes = list(request.indexes)
        # broadcasting consumers have no retry topic
        if not self._options.is_clustering:
            for message in request.messages[first:]:
                _log.warning(
                    "group %s: BROADCASTING, the message %s is dropped as it was consumed in vain",
                    self._group,
                    message.msg_id,
                )
            return indexes
        level, kept = delay_level if isinstance(delay_level, int) else 0, []
        for position in range(first, len(indexes)):
            # expired messages were already sent back
            is_back = request.run.is_done(indexes[position]) or self._send_back.is_sent(
                request.messages[position], level, request.queue.broker_name
            )
            if not is_back:
                kept.append(position)
        if kept:
            self._consume_later(request, kept)
        return [index for position, index in enumerate(indexes) if position not in kept]

    def _consume_later(self, request: ConsumeRequest, positions: list[int]) -> None:
        messages = tuple(
            [
                message.seen_as(reconsume_times=message.reconsume_times + 1)
                for message in [request.messages[position] for position in positions]
            ]
        )
        indexes = [request.indexes[position] for position in positions]
        again = ConsumeRequest(request.process_queue, request.queue, request.run, indexes, messages)
        # after five seconds, as in Java
        self._run_later(self._timings.resubmit, lambda: self._workers.submit([again]))

    def _is_expired(self, run: MessageRun, index: int, before: float) -> bool:
        return any(
            request.run is run and index in request.indexes and request.started is not None and request.started < before
            for request in list(self._running.values())
        )


def _count_acknowledged(ack_index: object, count: int) -> int:
    # anything but an integer acknowledges nothing, so that no message is lost
    return max(0, min(ack_index + 1, count)) if isinstance(ack_index, int) else 0
