"""Pulls: each queue has one on its way, whose end is the beginning of the next one.

Source: `PullMessageService`, `DefaultMQPushConsumerImpl.pullMessage`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Protocol

from rmqfast.client.consumer import PullRequest
from rmqfast.client.consumer.pull_api import PullApi, PullResult, PullStatus, PullSysFlag
from rmqfast.client.instance.namespaces import RETRY_PREFIX
from rmqfast.client.push.consume_service import Later
from rmqfast.client.push.counters import ConsumeCounters
from rmqfast.client.push.options import PushOptions, PushTimings
from rmqfast.client.push.process_queue import ProcessQueue
from rmqfast.errors import ResponseError, RmqError
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

_log = logging.getLogger(__name__)

#: What brokers of 5.x answer that have too much to do, and how soon they are asked again, in seconds.
_FLOW_CONTROL, _FLOW_CONTROL_DELAY = 215, 0.02
_COMMIT, _SUSPEND = int(PullSysFlag.COMMIT_OFFSET), int(PullSysFlag.SUSPEND)
_SUBSCRIPTION = int(PullSysFlag.SUBSCRIPTION)


class Puller(Protocol):
    """The consumer that pulls are for."""

    @property
    def is_running(self) -> bool:
        """Whether it is started, and not shut down."""

    @property
    def is_suspended(self) -> bool:
        """Whether it does not want messages now."""

    @property
    def is_in_order(self) -> bool:
        """Whether queues have to be locked."""

    def subscription(self, topic: str) -> SubscriptionData | None:
        """What it wants of a topic."""

    def compute_pull_from_where(self, queue: MessageQueue) -> int:
        """Where a queue's first pull begins; negative where that cannot be told."""

    def memory_offset(self, queue: MessageQueue) -> int:
        """Where the group goes on, as far as is known here; -1 where nothing is."""

    def correct_offset(self, queue: MessageQueue, process_queue: ProcessQueue, offset: int) -> None:
        """Goes on, past messages that nobody wants, where all others are done."""

    def give_up(self, queue: MessageQueue, offset: int) -> None:
        """Gives a queue up, to begin anew at an offset."""

    def consume(self, result: PullResult, process_queue: ProcessQueue, queue: MessageQueue) -> None:
        """Takes messages."""


class Thresholds:
    """Beyond what no more is pulled; changes with the number of queues where there are limits of topics.

    Attributes:
        messages: Of a queue.
        mebibytes: Of a queue.
        span: Of a queue's offsets.
    """

    def __init__(self, options: PushOptions) -> None:
        self.messages = options.pull_threshold_for_queue
        self.mebibytes = options.pull_threshold_size_for_queue
        self.span = options.consume_concurrently_max_span

    def exceeded_by(self, process_queue: ProcessQueue, *, in_order: bool) -> str | None:
        """What there is too much of, in words."""
        if process_queue.count > self.messages:
            return f"{process_queue.count} messages, above {self.messages}"
        if process_queue.size > self.mebibytes << 20:
            return f"{process_queue.size} bytes, above {self.mebibytes} MiB"
        if not in_order and process_queue.count and (span := process_queue.span) > self.span:
            return f"a span of {span} offsets, above {self.span}"
        return None

    def has_room(self, process_queue: ProcessQueue, *, in_order: bool) -> bool:
        """Whether there is so little that pulling pays again."""
        return process_queue.count <= self.messages // 2 and self.exceeded_by(process_queue, in_order=in_order) is None


class PullMessageService:
    """Pulls for a consumer, each queue by itself.

    A pull that found something asks for the next one from where it ends; all others go through one thread.

    Args:
        consumer: Who wants messages.
        api: Pulls.
        options: How many messages, and how long to wait.
        timings: What to wait for.
        counters: Counts.
        scheduler: Does things later.
        thresholds: Beyond what no more is pulled.

    Source: `PullMessageService`.
    """

    def __init__(
        self,
        consumer: Puller,
        api: PullApi,
        *,
        options: PushOptions,
        timings: PushTimings,
        counters: ConsumeCounters,
        scheduler: Later,
        thresholds: Thresholds,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._consumer, self._api, self._options, self._timings = consumer, api, options, timings
        self._counters, self._scheduler, self._thresholds, self._clock = counters, scheduler, thresholds, clock
        self._work: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._parked: dict[ProcessQueue, PullRequest[ProcessQueue]] = {}
        self._thread: threading.Thread | None = None
        self.flow_control_times = 0

    def start(self, name: str) -> None:
        """Starts the thread.

        Args:
            name: Of the group.
        """
        self._thread = threading.Thread(target=self._run, name=f"rmqfast-pull-{name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._work.put(None)

    def submit(self, request: PullRequest[ProcessQueue]) -> None:
        """Has a queue pulled from now on."""
        self._work.put(lambda: self.pull(request))

    def submit_later(self, request: PullRequest[ProcessQueue], delay: float) -> None:
        """Has a queue pulled after some seconds."""
        self.later(delay, lambda: self.pull(request))

    def later(self, delay: float, work: Callable[[], object]) -> None:
        """Has work done on the thread of pulls, after some seconds."""
        self._scheduler.later(delay, lambda: self._work.put(work))

    def room(self, process_queue: ProcessQueue) -> None:
        """Messages of a queue are done whose pull waits for that: pulls, where there is enough room."""
        if self._thresholds.has_room(process_queue, in_order=self._consumer.is_in_order):
            request = self._parked.pop(process_queue, None)
            if request is not None:
                process_queue.is_parked = False
                self.submit(request)

    def pull(self, request: PullRequest[ProcessQueue]) -> None:
        """Pulls, or looks again later.

        Source: `DefaultMQPushConsumerImpl.pullMessage`.
        """
        process_queue, consumer = request.process_queue, self._consumer
        if process_queue.is_dropped:
            return
        process_queue.last_pull_timestamp = self._clock()
        exception_delay = self._options.pull_time_delay_millis_when_exception / 1000
        if not consumer.is_running:
            self.submit_later(request, exception_delay)
        elif consumer.is_suspended:
            self.submit_later(request, self._timings.suspended)
        elif self._thresholds.exceeded_by(process_queue, in_order=consumer.is_in_order) is not None:
            self._park(request)
        elif consumer.is_in_order and not self._is_ready_in_order(request):
            self.submit_later(request, exception_delay)
        elif (subscription := consumer.subscription(request.queue.topic)) is None:
            _log.warning("%s is pulled without a subscription", request.queue)
            self.submit_later(request, exception_delay)
        else:
            self._ask(request, subscription)

    def _ask(self, request: PullRequest[ProcessQueue], subscription: SubscriptionData) -> None:
        options, flag, commit, began = self._options, _SUSPEND, 0, self._clock()
        # A pull and the offset stored when a queue is given up use different connections. If the broker reads the pull
        # later, the group goes back to the pull's offset: in order, messages would be consumed twice.
        commits = options.is_clustering and not self._consumer.is_in_order
        if commits and (offset := self._consumer.memory_offset(request.queue)) > 0:
            flag, commit = flag | _COMMIT, offset
        if options.post_subscription_when_pull and not subscription.class_filter_mode:
            flag |= _SUBSCRIPTION

        def done(end: PullResult | RmqError) -> None:
            try:
                if isinstance(end, PullResult):
                    self.pulled(request, end, self._clock() - began)
                else:
                    self.failed(request, end)
            except Exception:  # noqa: BLE001 - whatever it is, the queue must not be left alone
                _log.exception("a pull of %s", request.queue)
                self._retry(request)

        try:
            self._api.pull_async(
                request.queue,
                subscription,
                request.next_offset,
                options.pull_batch_size,
                done,
                sys_flag=flag,
                commit_offset=commit,
                suspend=options.pull_suspend_millis / 1000,
                timeout=options.pull_timeout_millis / 1000,
            )
        except RmqError as error:
            self.failed(request, error)

    def pulled(self, request: PullRequest[ProcessQueue], result: PullResult, seconds: float) -> None:
        """Takes what came, and pulls on.

        Source: `DefaultMQPushConsumerImpl.pullMessage`, its `PullCallback.onSuccess`.
        """
        queue, process_queue = request.queue, request.process_queue
        request.next_offset = result.next_begin_offset
        if result.status is PullStatus.OFFSET_ILLEGAL:
            self._give_up(request)
            return
        if result.status is not PullStatus.FOUND:
            if process_queue.count == 0:
                self._consumer.correct_offset(queue, process_queue, request.next_offset)
        elif result.messages:
            self._counters.pulled(queue.topic, len(result.messages), seconds)
            self._consumer.consume(result, process_queue, queue)
            if self._options.pull_interval > 0:
                self.submit_later(request, self._options.pull_interval / 1000)
                return
        self.pull(request)

    def failed(self, request: PullRequest[ProcessQueue], error: RmqError) -> None:
        """A pull failed: it is tried again."""
        if not request.process_queue.is_dropped and self._consumer.is_running:
            level = logging.DEBUG if request.queue.topic.startswith(RETRY_PREFIX) else logging.WARNING
            _log.log(level, "%s cannot be pulled at %d: %s", request.queue, request.next_offset, error)
        if isinstance(error, ResponseError) and error.code == _FLOW_CONTROL:
            self.submit_later(request, _FLOW_CONTROL_DELAY)
        else:
            self._retry(request)

    def _retry(self, request: PullRequest[ProcessQueue]) -> None:
        self.submit_later(request, self._options.pull_time_delay_millis_when_exception / 1000)

    def _give_up(self, request: PullRequest[ProcessQueue]) -> None:
        queue = request.queue
        _log.warning("%s has no such offset: it is taken anew at %d", queue, request.next_offset)
        request.process_queue.is_dropped = True
        request.process_queue.clear()
        self.later(self._timings.illegal_offset, lambda: self._consumer.give_up(queue, request.next_offset))

    def _park(self, request: PullRequest[ProcessQueue]) -> None:
        """Looks at a queue that has too much again when messages are done, or a moment has passed."""
        process_queue = request.process_queue
        self.flow_control_times += 1
        if self.flow_control_times % 1000 == 1:
            too_much = self._thresholds.exceeded_by(process_queue, in_order=self._consumer.is_in_order)
            _log.warning(
                "%s: not pulled, there are too many messages that are not done: %s; this has happened %d times",
                request.queue,
                too_much,
                self.flow_control_times,
            )
        self._parked[process_queue] = request
        process_queue.is_parked = True

        def again() -> None:
            if self._parked.pop(process_queue, None) is not None:
                process_queue.is_parked = False
                self._work.put(lambda: self.pull(request))

        self._scheduler.later(self._timings.flow_control, again)

    def _is_ready_in_order(self, request: PullRequest[ProcessQueue]) -> bool:
        """Whether a queue is locked; where it is for the first time, it is pulled from where the group goes on now."""
        process_queue = request.process_queue
        if not process_queue.is_locked:
            return False
        if not request.was_locked:
            try:
                offset = self._consumer.compute_pull_from_where(request.queue)
            except RmqError as error:
                _log.warning("it cannot be told where %s is to be pulled from: %s", request.queue, error)
                return False
            if offset < 0:
                return False
            request.next_offset = offset
            request.was_locked = True
        return True

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                work()
            except Exception:  # noqa: BLE001 - the next queue is due
                _log.exception("the thread of pulls")
            del work
