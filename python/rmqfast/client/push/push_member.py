"""The inner part of a push consumer, which its client instance calls.

Source: RocketMQ's `DefaultMQPushConsumerImpl`, `PullAPIWrapper`, `MQClientInstance`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rmqfast._native import Fetched, MessageView
from rmqfast.client.consumer import (
    LocalFileOffsetStore,
    OffsetStore,
    ReadOffsetType,
    RemoteBrokerOffsetStore,
    build_subscription_data,
)
from rmqfast.client.consumer.hooks import ConsumeHooks, FilterContext, FilterHooks
from rmqfast.client.consumer.send_back import DEFAULT_MAX_RECONSUME_TIMES, SendBack
from rmqfast.client.consumer.subscription_watcher import SubscriptionWatcher
from rmqfast.client.instance import ClientInstance, ConsumeType, Handle, MessageModel
from rmqfast.client.instance.exits import EXITS
from rmqfast.client.instance.namespaces import RETRY_PREFIX
from rmqfast.client.instance.scheduler import Scheduler
from rmqfast.client.instance.validators import MAX_TOPIC
from rmqfast.client.pulling.illegal_offset import offset_to_go_on_at
from rmqfast.client.pulling.pulled_queues import BrokerChoice, PulledQueue, PulledQueues, messages_of
from rmqfast.client.push.concurrently_service import ConsumeMessageConcurrentlyService
from rmqfast.client.push.consume_service import ConsumeService
from rmqfast.client.push.counters import ConsumeCounters
from rmqfast.client.push.options import PushOptions, PushTimings
from rmqfast.client.push.orderly_service import ConsumeMessageOrderlyService
from rmqfast.client.push.process_queue import ProcessQueue
from rmqfast.client.push.pull_message_service import PullMessageService, make_puller
from rmqfast.client.push.rebalance_push import RebalancePush
from rmqfast.logs import logger_of
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from rmqfast.system import monotonic
from rmqfast.threads import new_lock, sleep

_log = logger_of(__name__)
#: Brokers before 5.5 serve such a group except for its retries.
_LONG_RETRY_TOPIC = (
    "group %s: brokers of 4.9 store neither retries nor dead letters of a group whose name has %d characters, "
    "those of 5 from 249 on: what is consumed in vain stays with this member. Brokers of 5.5 do not serve it at all. "
    "Take a name of up to %d characters"
)

#: Seconds that a shutdown waits for a running rebalance, and for its threads.
_REBALANCE_PATIENCE, _THREADS_PATIENCE = 5.0, 1.0
#: Maximum threads for work that may wait for a broker.
_THREADS = 4


class PushMember:
    """The inner part of a push consumer, which its client instance knows as a `ConsumerInner`."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        listener: Callable[..., Any],
        subscriptions: Mapping[str, SubscriptionData],
        *,
        options: PushOptions,
        timings: PushTimings,
        in_order: bool,
        hooks: ConsumeHooks,
        filters: FilterHooks,
    ) -> None:
        self.instance: Final = instance
        self._group = group
        self._options = options
        self._timings = timings
        self._is_started = False
        self.is_suspended: bool = False
        self._is_listener_in_order = in_order
        # as in RocketMQ 5, orderly broadcasting needs no locks; 4.9 waits for locks and never pulls
        self.is_in_order: Final = in_order and options.is_clustering
        self._filters = filters
        self.counters: Final = ConsumeCounters()
        self.offsets: OffsetStore = options.offset_store or _offset_store(instance, group, options)
        self._work = Scheduler(f"rmqfast-push-{group}", _THREADS)
        self.queues: PulledQueues[ProcessQueue] = PulledQueues(
            self._work.later, subscription=self.subscription, begin=self.compute_pull_from_where
        )
        self.pulls: Final = PullMessageService(self, self.queues, self.counters)
        self.service: Final = self._make_service(listener, hooks)
        self.rebalance: Final = RebalancePush(
            instance,
            group,
            options=options,
            timings=timings,
            offsets=self.offsets,
            queues=self.queues,
            run_later=self._work.later,
            make=self.service.new_process_queue,
            in_order=self.is_in_order,
        )
        if isinstance(self.service, ConsumeMessageOrderlyService):
            self.service.locks = self.rebalance.locks
        self.rebalance.subscriptions.update(subscriptions)
        if options.is_clustering:
            retry = RETRY_PREFIX + group
            # messages sent back arrive by the retry topic
            self.rebalance.subscriptions[retry] = build_subscription_data(retry, "*")
            # the broker cannot create a topic of this length
            if len(retry) > MAX_TOPIC:
                _log.warning(_LONG_RETRY_TOPIC, group, len(group), MAX_TOPIC - len(RETRY_PREFIX))
        self._watcher = SubscriptionWatcher(instance, group, self.subscriptions)
        self._rebalancing, self._is_rebalance_due = new_lock(), False
        self._start_timestamp = int(time.time() * 1000)
        self._cleaning: Handle | None = None

    @property
    def is_running(self) -> bool:
        return self._is_started and not self.instance.is_closed

    @property
    def group(self) -> str:
        return self._group

    @property
    def consume_type(self) -> ConsumeType:
        return "CONSUME_PASSIVELY"

    @property
    def message_model(self) -> MessageModel:
        return self._options.message_model

    @property
    def consume_from_where(self) -> str:
        return str(self._options.consume_from_where)

    @property
    def is_unit_mode(self) -> bool:
        return self.instance.config.is_unit_mode

    def start(self) -> None:
        # before the rebalance asks for offsets
        self.offsets.load()
        self.instance.register_consumer(self._group, self)
        try:
            self.service.start()
            self.instance.start()
            puller = make_puller(
                self._group, self.instance.client_id, self._options, self.instance.config, in_order=self.is_in_order
            )
            self.queues.open(puller, BrokerChoice(self.instance.routes.subscribe_address, self.instance.update_route))
            self.pulls.start(self._group)
            EXITS.add(self)
            self._is_started = True
            if isinstance(self.service, ConsumeMessageConcurrentlyService):
                seconds = self._options.consume_timeout * 60
                self._cleaning = self.instance.scheduler.every(seconds, seconds, self._clean_expired)
            self._join()
            self._watcher.start(self.instance.scheduler, self.instance.config.heartbeat_interval)
        except BaseException:
            self.shutdown()
            raise

    def shutdown(self) -> None:
        self._is_started = False
        self._watcher.stop()
        if self._cleaning is not None:
            self._cleaning.cancel()
        # a running rebalance completes first, so that its queues are released, too
        is_alone = self._rebalancing.acquire(timeout=_REBALANCE_PATIENCE)
        try:
            self.service.shutdown(self._options.await_termination_millis_when_shutdown / 1000)
            self.persist_consumer_offset()
            # after the offsets are stored, so that the next owner starts at them
            self._unlock_queues()
        finally:
            if is_alone:
                self._rebalancing.release()
        self.instance.unregister_consumer(self._group)
        self.rebalance.drop_all()
        self._end_threads(_THREADS_PATIENCE)
        EXITS.remove(self)

    def end_at_exit(self, deadline: float) -> None:
        self._end_threads(max(0.0, deadline - monotonic()))

    def subscribe(self, subscription: SubscriptionData) -> None:
        self.rebalance.subscriptions[subscription.topic] = subscription
        self.queues.subscribe(subscription)
        self.instance.update_route(subscription.topic)
        # brokers need the new subscription before the next pull
        self.instance.send_heartbeats()
        self.instance.rebalance_immediately()

    def unsubscribe(self, topic: str) -> None:
        self.rebalance.subscriptions.pop(topic, None)

    def suspend(self) -> None:
        self.is_suspended = True
        self.queues.suspend(is_suspended=True)

    def resume(self) -> None:
        self.is_suspended = False
        self.queues.suspend(is_suspended=False)
        self.do_rebalance()

    def subscriptions(self) -> Sequence[SubscriptionData]:
        return list(self.rebalance.subscriptions.values())

    def subscription(self, topic: str) -> SubscriptionData | None:
        return self.rebalance.subscriptions.get(topic)

    def do_rebalance(self) -> None:
        """Rebalances unless suspended. If another thread is rebalancing, that thread rebalances once more."""
        self._is_rebalance_due = True
        # no thread waits for another's rebalance: an application's strategy may itself request one
        while self._is_rebalance_due and self._rebalancing.acquire(blocking=False):
            try:
                self._is_rebalance_due = False
                # as in Java, a suspended consumer keeps its queues
                if self.is_running and not self.is_suspended:
                    self.rebalance.do_rebalance(is_ordered=self.is_in_order)
            finally:
                self._rebalancing.release()

    def persist_consumer_offset(self) -> None:
        self.offsets.persist_all(self.rebalance.process_queues)

    def update_topic_subscribe_info(self, topic: str, queues: Sequence[MessageQueue]) -> None:
        if topic in self.rebalance.subscriptions:
            self.rebalance.subscribe_info[topic] = frozenset(queues)

    def is_subscribe_topic_need_update(self, topic: str) -> bool:
        return topic in self.rebalance.subscriptions and topic not in self.rebalance.subscribe_info

    def compute_pull_from_where(self, queue: MessageQueue) -> int:
        return self.rebalance.compute_pull_from_where(queue)

    def memory_offset(self, queue: MessageQueue) -> int:
        return int(self.offsets.read_offset(queue, ReadOffsetType.READ_FROM_MEMORY))

    def correct_offset(self, queue: MessageQueue, process_queue: ProcessQueue, offset: int) -> None:
        # unconsumed messages keep the offset unchanged
        if process_queue.count == 0 and not process_queue.is_dropped:
            self.offsets.update_offset(queue, offset, increase_only=True)

    def give_up(self, pulled: PulledQueue[ProcessQueue], fetched: Fetched) -> None:
        """Releases a queue whose pull offset is illegal. Some time later, a rebalance assigns it at a legal offset."""
        queue, process_queue = pulled.queue, pulled.process_queue
        offset = offset_to_go_on_at(self.instance.api, pulled, fetched)
        # running listeners of the queue have no effect from now on
        process_queue.is_dropped = True
        process_queue.clear()
        self.queues.stop([queue])
        self._work.later(self._timings.illegal_offset, lambda: self._begin_anew(queue, offset))

    def messages(self, queue: MessageQueue, fetched: Fetched) -> list[MessageView]:
        messages = messages_of(fetched, self.instance.config.namespace)
        if self._filters:
            return self._filters.filter(FilterContext(self._group, queue, messages, self.is_unit_mode))
        return messages

    def consume(self, messages: list[MessageView], size: int, process_queue: ProcessQueue, queue: MessageQueue) -> None:
        self.service.submit(process_queue.put(messages, size), process_queue, queue)

    def reset_offset(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Stops consumption, waits ten seconds, sets the offsets, and assigns the queues again."""
        self.suspend()
        try:
            for queue, process_queue in list(self.rebalance.process_queues.items()):
                if queue.topic == topic and queue in offsets:
                    process_queue.is_dropped = True
                    process_queue.clear()
                    self.queues.stop([queue])
            # as in Java, running listeners get ten seconds
            sleep(self._timings.reset)
            for queue, process_queue in list(self.rebalance.process_queues.items()):
                if queue.topic == topic and queue in offsets:
                    self.offsets.update_offset(queue, offsets[queue])
                    self.rebalance.remove_unnecessary(queue, process_queue)
                    self.rebalance.process_queues.pop(queue, None)
        finally:
            self.resume()

    def consume_message_directly(self, message: MessageView, broker_name: str | None) -> dict[str, Any]:
        return self.service.consume_directly(message, broker_name)

    def consumer_status(self, topic: str) -> Mapping[MessageQueue, int]:
        return dict(self.offsets.clone(topic))

    def running_info(self) -> dict[str, Any]:
        properties = self._options.as_properties() | {
            "allocateMessageQueueStrategy": type(self.rebalance.strategy).__name__,
            "consumerGroup": self._group,
            "PROP_CONSUMER_START_TIMESTAMP": str(self._start_timestamp),
            "PROP_CONSUMEORDERLY": str(self._is_listener_in_order).lower(),
            "PROP_THREADPOOL_CORE_SIZE": str(self._options.consume_thread_min),
        }
        subscriptions = self.subscriptions()
        queues = list(self.rebalance.process_queues.items())
        return {
            "properties": properties,
            "subscriptionSet": [each.to_json() for each in sorted(subscriptions, key=lambda each: each.topic)],
            "mqTable": {queue: process_queue.info(self.memory_offset(queue)) for queue, process_queue in queues},
            "statusTable": {each.topic: self.counters.status(each.topic) for each in subscriptions},
        }

    def _make_service(self, listener: Callable[..., Any], hooks: ConsumeHooks) -> ConsumeService:
        limit = self._options.max_reconsume_times
        # as in Java: no limit for orderly consumption, otherwise 16 retries
        most = limit if limit != -1 else 2**31 - 1 if self._is_listener_in_order else DEFAULT_MAX_RECONSUME_TIMES
        named = {
            "options": self._options,
            "timings": self._timings,
            "offsets": self.offsets,
            "send_back": SendBack(self.instance, self._group, most),
            "counters": self.counters,
            "run_later": self.instance.scheduler.later,
            "namespace": self.instance.config.namespace,
            "on_done": self.pulls.on_consumed,
            "hooks": hooks,
        }
        if self._is_listener_in_order:
            return ConsumeMessageOrderlyService(self._group, listener, **named)
        return ConsumeMessageConcurrentlyService(self._group, listener, **named)

    def _join(self) -> None:
        instance = self.instance
        for topic in list(self.rebalance.subscriptions):
            instance.update_route(topic)
        instance.check_client_in_broker()
        instance.send_heartbeats()
        retry = RETRY_PREFIX + self._group
        if self.is_subscribe_topic_need_update(retry):
            # brokers create the retry topic at the heartbeat
            instance.update_route(retry)
        instance.rebalance_immediately()

    def _unlock_queues(self) -> None:
        """Unlocks the queues for other consumers, except for queues whose listener is running."""
        if isinstance(self.service, ConsumeMessageOrderlyService) and self.is_in_order:
            # a lock that is left would block other members for a minute
            self.rebalance.locks.unlock_given_up()
            for queue, process_queue in list(self.rebalance.process_queues.items()):
                if not self.service.is_at_work(process_queue):
                    self.rebalance.locks.unlock(queue, oneway=False)

    def _begin_anew(self, queue: MessageQueue, offset: int) -> None:
        self.offsets.update_offset(queue, offset)
        # stored at once: the rebalance reads the offset from the broker
        self.offsets.persist(queue)
        self.rebalance.remove_process_queue(queue)
        self.instance.rebalance_immediately()

    def _end_threads(self, timeout: float) -> None:
        self.queues.close()
        self._work.stop(timeout)
        self.pulls.join(timeout)

    def _clean_expired(self) -> None:
        if isinstance(self.service, ConsumeMessageConcurrentlyService):
            self.service.clean_all(dict(self.rebalance.process_queues))


def _offset_store(instance: ClientInstance, group: str, options: PushOptions) -> OffsetStore:
    if options.is_clustering:
        return RemoteBrokerOffsetStore(instance, group)
    return LocalFileOffsetStore(instance.config.offset_dir(), instance.client_id, group)
