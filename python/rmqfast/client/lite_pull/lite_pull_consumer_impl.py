"""What a lite pull consumer does besides what its application calls: it starts, gets queues, pulls, and ends.

Source: `DefaultLitePullConsumerImpl`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import Enum

from rmqfast._native import Puller
from rmqfast.client.consumer import OffsetStore
from rmqfast.client.consumer.active_consumer import ActiveConsumer
from rmqfast.client.consumer.subscription_watcher import SubscriptionWatcher
from rmqfast.client.instance import ClientConfig, ClientInstance, Handle
from rmqfast.client.instance.exits import EXITS
from rmqfast.client.instance.namespaces import unwrap, wrap
from rmqfast.client.lite_pull.assigned_queues import AssignedQueues
from rmqfast.client.lite_pull.broker_puller import NativePuller
from rmqfast.client.lite_pull.options import LitePullOptions
from rmqfast.client.lite_pull.pullers import PullContext, Pullers
from rmqfast.client.lite_pull.rebalance_lite_pull import RebalanceLitePull
from rmqfast.client.lite_pull.task_threads import TaskThreads
from rmqfast.client.lite_pull.topic_watch import TopicWatch
from rmqfast.client.producer import Producer
from rmqfast.client.trace import AsyncTraceDispatcher
from rmqfast.errors import ClientError
from rmqfast.message import MessageQueue
from rmqfast.remoting.credentials import STREAM_FIELDS
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

_log = logging.getLogger(__name__)

_FIRST_CHECK = 10.0
#: That a puller holds of all its queues, before they wait here.
_MOST_BYTES = 64 << 20
#: How long an end waits for its threads, in seconds.
_PATIENCE = 1.0


class SubscriptionType(Enum):
    """Whether the group's members share the queues, or the application says which it wants."""

    NONE = "NONE"
    SUBSCRIBE = "SUBSCRIBE"
    ASSIGN = "ASSIGN"


class LitePullConsumerImpl(ActiveConsumer):
    """A lite pull consumer without what its application calls.

    Args:
        group: The consumer group.
        config: How to reach the cluster.
        options: How to pull.
    """

    def __init__(self, group: str, config: ClientConfig, options: LitePullOptions) -> None:
        super().__init__(group, config, options)
        self.options = options
        self._type = SubscriptionType.NONE
        self._assigned = AssignedQueues(options)
        self._threads = TaskThreads("rmqfast-lite-pull", options.pull_threads)
        self._watch = TopicWatch(self._fetched)
        self._check: Handle | None = None
        self._watcher: SubscriptionWatcher | None = None
        self._next_commit = 0.0
        self._auto_commit = options.auto_commit
        self._trace: AsyncTraceDispatcher | None = None

    @property
    def consume_from_where(self) -> str:
        """Where a new group begins."""
        return str(self.options.consume_from_where)

    def subscriptions(self) -> Sequence[SubscriptionData]:
        """What heartbeats say; nothing where queues are assigned."""
        return list(self._subscriptions.values())

    def tell_of_arrivals(self, tell: Callable[[], object]) -> None:
        """Has a function called whenever messages came, and at the end: for an event loop, which cannot wait in `poll`.

        Args:
            tell: Called on any thread, maybe more often than there is something; must not wait, nor call the consumer.
        """
        self._assigned.tell_of_arrivals(tell)

    def end_at_exit(self, deadline: float) -> None:
        """Pulls no more, as the interpreter ends.

        Args:
            deadline: When to give up waiting, by `time.monotonic`.
        """
        self._assigned.close()
        self._pullers.close(max(0.0, deadline - time.monotonic()))
        self._threads.close(max(0.0, deadline - time.monotonic()))

    def _make_rebalance(self, instance: ClientInstance, offsets: OffsetStore) -> RebalanceLitePull:
        return RebalanceLitePull(instance, self.group, self.options, offsets, self._queues_changed)

    def _owned_queues(self) -> Iterable[MessageQueue]:
        """Source: `DefaultLitePullConsumerImpl.persistConsumerOffset`."""
        if self._type is SubscriptionType.ASSIGN:
            return self._assigned.queues()
        return self._rebalance.process_queues.copy()

    def _started(self) -> None:
        """Source: `DefaultLitePullConsumerImpl.operateAfterRunning`."""
        context = PullContext(
            cache=self._assigned,
            threads=self._threads,
            subscription=self._subscription,
            begin=self._rebalance.compute_pull_from_where,
            find=self._instance.subscribe_address,
            update_route=self._instance.update_route,
            open=self._open_puller,
        )
        self._pullers = Pullers(context)
        EXITS.add(self)
        interval = self.options.topic_metadata_check_interval
        self._check = self._instance.scheduler.every(min(_FIRST_CHECK, interval), interval, self._watch_topics)
        if self._type is SubscriptionType.SUBSCRIBE:
            self._update_routes()
        elif self._type is SubscriptionType.ASSIGN:
            self._pullers.start(filter(None, map(self._assigned.get, self._assigned.queues())))
        self._watch.fetch_all()
        self._instance.check_client_in_broker()
        self._join()
        self._watcher = SubscriptionWatcher(self._instance, self.group, self.subscriptions)
        self._watcher.start(self._instance.scheduler, self._instance.config.heartbeat_interval)
        if self._trace is not None:
            self._trace.start(Producer, self._instance.config)

    def _ended(self) -> None:
        EXITS.remove(self)
        if self._watcher is not None:
            self._watcher.stop()
        if self._check is not None:
            self._check.cancel()
        self._assigned.close()
        self._pullers.close(_PATIENCE)
        self._threads.close(_PATIENCE)
        if self._trace is not None:
            self._trace.shutdown()

    def _not_running(self) -> ClientError:
        return ClientError(
            "The consumer not running, please start it first.",
            next_step=f"it is {self._state}: start it once, by start() or with; after shutdown() make another one",
        )

    def _set_type(self, wanted: SubscriptionType) -> None:
        """Source: `DefaultLitePullConsumerImpl.setSubscriptionType`."""
        if self._type not in {SubscriptionType.NONE, wanted}:
            raise ClientError(
                "Subscribe and assign are mutually exclusive.", next_step="make another consumer for the other one"
            )
        self._type = wanted

    def _put_subscription(self, subscription: SubscriptionData) -> None:
        """Source: `DefaultLitePullConsumerImpl.subscribe`."""
        self._subscriptions[subscription.topic] = subscription
        if self.is_running:
            self._update_routes()
            self._join()

    def _join(self) -> None:
        """Tells the brokers what it wants, and takes its queues; Java's waits up to a second for a heartbeat."""
        if self._type is SubscriptionType.SUBSCRIBE:
            self._instance.send_heartbeats()
            self._instance.rebalance_immediately()

    def _drop_subscription(self, topic: str) -> None:
        """Source: `DefaultLitePullConsumerImpl.unsubscribe`."""
        self._subscriptions.pop(topic, None)
        _, gone = self._assigned.update_topic(topic, (), {})
        if self.is_running:
            self._pullers.stop(gone)

    def _assign_queues(self, queues: Collection[MessageQueue]) -> None:
        """Source: `DefaultLitePullConsumerImpl.assign`."""
        added, gone = self._assigned.replace(queues)
        if self.is_running:
            self._pullers.stop(gone)
            self._pullers.start(added)

    def _queues_changed(self, topic: str, all_queues: frozenset[MessageQueue], mine: frozenset[MessageQueue]) -> None:
        """Is told by the rebalance.

        Source: `DefaultLitePullConsumerImpl.MessageQueueListenerImpl`, `updatePullTask`.
        """
        wanted = mine & self._rebalance.process_queues.keys()
        added, gone = self._assigned.update_topic(topic, wanted, self._rebalance.process_queues)
        self._pullers.stop(gone)
        self._pullers.start(added)
        listener = self.options.message_queue_listener
        if listener is not None:
            shown = (frozenset(map(self._shown, queues)) for queues in (all_queues, mine))
            try:
                listener(unwrap(self._config.namespace, topic), *shown)
            except Exception:  # noqa: BLE001 - the application's, on a thread that others need
                _log.exception("group %s: messageQueueChanged exception", self.group)

    def _open_puller(self, address: str, broker_name: str) -> NativePuller:
        options, config = self.options, self._instance.config
        under_way = options.pulls_under_way * options.pull_batch_size
        signed = config.signer(is_stream=True) if config.access_key is not None else None
        return Puller(
            address,
            consumer_group=self.group,
            broker_name=broker_name,
            depth=options.pulls_under_way,
            batch=options.pull_batch_size,
            suspend=options.broker_suspend,
            timeout=options.suspend_timeout,
            connect_timeout=config.connect_timeout,
            retry=options.pull_time_delay_when_exception,
            of_queue=(min(under_way, options.pull_threshold_for_queue), options.pull_threshold_size_for_queue),
            in_all=(min(2 * under_way, options.pull_threshold_for_all), _MOST_BYTES),
            tls=config.tls,
            ext_fields=None if signed else dict(STREAM_FIELDS),
            sign=signed,
            verify_crc=config.verify_crc,
        )

    def _subscription(self, topic: str) -> SubscriptionData | None:
        """Source: `DefaultLitePullConsumerImpl.PullTaskImpl.run`."""
        if self._type is SubscriptionType.ASSIGN:
            return SubscriptionData(topic=topic, sub_version=0)
        return self._subscriptions.get(topic)

    def _update_routes(self) -> None:
        """Source: `DefaultLitePullConsumerImpl.updateTopicSubscribeInfoWhenSubscriptionChanged`."""
        for topic in list(self._subscriptions):
            self._instance.update_route(topic)

    def _watch_topics(self) -> None:
        self._threads.later(0.0, self._watch.compare)

    def _fetched(self, topic: str) -> frozenset[MessageQueue]:
        queues = self._admin.fetch_subscribe_message_queues(wrap(self._config.namespace, topic))
        return frozenset(map(self._shown, queues))

    def _commit(self, queues: Iterable[MessageQueue] | None = None) -> None:
        """Notes in memory where the application is.

        Source: `DefaultLitePullConsumerImpl.commitAll`, `commit`.
        """
        for queue, offset in self._assigned.consumed(queues).items():
            if offset >= 0:
                self._offsets.update_offset(queue, offset)
            else:
                _log.debug("group %s: nothing of %s was polled: there is nothing to commit", self.group, queue)

    def _maybe_auto_commit(self, now: float) -> None:
        """Source: `DefaultLitePullConsumerImpl.maybeAutoCommit`."""
        if self._auto_commit and now >= self._next_commit:
            self._commit()
            self._next_commit = now + self.options.auto_commit_interval
