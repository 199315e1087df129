"""The rebalance of push consumers. Starts to pull assigned queues.

Source: RocketMQ's `RebalancePushImpl`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from rmqfast.client.consumer import (
    ConsumeFromWhere,
    OffsetStore,
    PullRequest,
    ReadOffsetType,
    Rebalance,
    compute_pull_from_where,
)
from rmqfast.client.consumer.queue_admin import QueueAdmin
from rmqfast.client.consumer.strategies import AllocateMessageQueueAveragely
from rmqfast.client.instance import ClientInstance
from rmqfast.client.pulling.pulled_queues import PulledQueue, PulledQueues, RunLater
from rmqfast.client.push.options import PushOptions, PushTimings
from rmqfast.client.push.process_queue import ProcessQueue
from rmqfast.logs import logger_of
from rmqfast.message import MessageQueue

_log = logger_of(__name__)


class RebalancePush(Rebalance[ProcessQueue]):
    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        *,
        options: PushOptions,
        timings: PushTimings,
        offsets: OffsetStore,
        queues: PulledQueues[ProcessQueue],
        run_later: RunLater,
        make: Callable[[], ProcessQueue],
        in_order: bool,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        strategy = options.allocate_strategy or AllocateMessageQueueAveragely()
        super().__init__(instance, group, options.message_model, strategy, offsets)
        self._options, self._timings, self._queues, self._run_later = options, timings, queues, run_later
        self._admin, self._dispatched = QueueAdmin(instance), list[PullRequest[ProcessQueue]]()
        self._make, self._in_order, self._wall_clock = make, in_order, wall_clock
        self.locks.on_changed = self._lock_changed

    def new_process_queue(self, queue: MessageQueue) -> ProcessQueue:  # noqa: ARG002
        process_queue = self._make()
        process_queue.is_locked = self._in_order
        return process_queue

    def dispatch(self, requests: Sequence[PullRequest[ProcessQueue]]) -> None:
        """Holds back new pulls until `message_queue_changed` has sent the subscription's new version to brokers.

        Brokers refuse earlier pulls with that version, and the retry would come a second later.
        """
        self._dispatched.extend(requests)

    def remove_unnecessary(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        self._queues.stop([queue])
        if not self._in_order:
            self._store(queue)
            return True
        if not process_queue.consume_lock.acquire(timeout=self._timings.unlock_patience):
            process_queue.try_unlock_times += 1
            process_queue.is_leaving = True
            _log.warning(
                "%s is being consumed: it is given up later, tried %d times", queue, process_queue.try_unlock_times
            )
            return False
        try:
            # includes the messages that the listener has just consumed, so that they are not redelivered
            self._store(queue)
            self._unlock_soon(queue, process_queue)
        finally:
            process_queue.consume_lock.release()
        return True

    def compute_pull_from_where(self, queue: MessageQueue) -> int:
        return compute_pull_from_where(
            ConsumeFromWhere(self._options.consume_from_where),
            queue,
            self.offset_store.read_offset(queue, ReadOffsetType.READ_FROM_STORE),
            max_offset=self._admin.max_offset,
            search_offset=self._admin.search_offset,
            consume_timestamp=self._options.consume_timestamp,
        )

    def message_queue_changed(
        self, topic: str, all_queues: frozenset[MessageQueue], mine: frozenset[MessageQueue]
    ) -> None:
        subscription = self.subscriptions.get(topic)
        if subscription is not None:
            # must increase even if the clock was set back, or brokers would keep the older subscription
            version = max(int(self._wall_clock() * 1000), subscription.sub_version + 1)
            self.subscriptions[topic] = replace(subscription, sub_version=version)
        options, count = self._options, len(self.process_queues)
        if count:
            messages, mebibytes = options.pull_threshold_for_queue, options.pull_threshold_size_for_queue
            if options.pull_threshold_for_topic != -1:
                messages = max(1, options.pull_threshold_for_topic // count)
            if options.pull_threshold_size_for_topic != -1:
                mebibytes = max(1, options.pull_threshold_size_for_topic // count)
            self._queues.set_threshold(messages, mebibytes << 20)
        _log.info("group %s: of %d queues of %s, %d are consumed here", self.group, len(all_queues), topic, len(mine))
        try:
            self.instance.send_heartbeats()
        finally:
            if subscription is not None:
                self._queues.subscribe(self.subscriptions.get(topic, subscription))
            dispatched, self._dispatched = self._dispatched, []
            for request in dispatched:
                queue, process_queue = request.queue, request.process_queue
                committed = int(self.offset_store.read_offset(queue, ReadOffsetType.READ_FROM_MEMORY))
                is_paused = self._in_order and not process_queue.is_locked
                self._queues.start(
                    PulledQueue(queue, process_queue, request.next_offset, max(0, committed), is_paused=is_paused)
                )

    def _lock_changed(self, queue: MessageQueue) -> None:
        process_queue = self.process_queues.get(queue)
        if process_queue is not None:
            self._queues.pause([queue], is_paused=not process_queue.is_locked)

    def _store(self, queue: MessageQueue) -> None:
        self.offset_store.persist(queue)
        self.offset_store.remove_offset(queue)

    def _unlock_soon(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        if process_queue.count:
            self.locks.give_up(queue)
            self._run_later(self._timings.unlock_delay, lambda: self.locks.unlock_given_up(queue))
        else:
            self.locks.unlock(queue)
