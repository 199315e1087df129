"""The inner part of a lite pull consumer.

Source: RocketMQ's `DefaultLitePullConsumerImpl`, `RebalanceLitePullImpl`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Final, TypeAlias

from rmqfast._native import Puller
from rmqfast.client.consumer import (
    MessageSelector,
    OffsetStore,
    PullRequest,
    ReadOffsetType,
    build_subscription_data,
    compute_pull_from_where,
)
from rmqfast.client.consumer.active_member import ActiveMember, ActiveRebalance, MessageQueueListener
from rmqfast.client.consumer.queue_admin import QueueAdmin
from rmqfast.client.consumer.rebalance import OwnedQueue
from rmqfast.client.consumer.subscription_watcher import SubscriptionWatcher
from rmqfast.client.instance import ClientConfig, ClientInstance, Handle
from rmqfast.client.instance.exits import EXITS
from rmqfast.client.instance.namespaces import wrap
from rmqfast.client.instance.scheduler import Scheduler
from rmqfast.client.lite_pull.options import LitePullOptions
from rmqfast.client.producer import Producer
from rmqfast.client.pulling.pulled_queues import BrokerChoice, PulledQueue, PulledQueues
from rmqfast.client.trace import AsyncTraceDispatcher
from rmqfast.errors import ClientError, RmqError
from rmqfast.logs import logger_of
from rmqfast.message import MessageQueue
from rmqfast.remoting.credentials import STREAM_FIELDS
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from rmqfast.system import monotonic
from rmqfast.threads import new_lock

_log = logger_of(__name__)

_FIRST_CHECK = 10.0
#: Maximum buffered bytes of all queues, in addition to the limits of the options.
_MOST_OF_ALL = 64 << 20
#: Seconds that a shutdown waits for threads.
_PATIENCE = 1.0


class SubscriptionType(Enum):
    """Whether queues come from a rebalance or are chosen by the application."""

    NONE = "NONE"
    SUBSCRIBE = "SUBSCRIBE"
    ASSIGN = "ASSIGN"


class RebalanceLitePull(ActiveRebalance):
    """The rebalance of a lite pull consumer. Starts to pull the queues that were assigned."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        options: LitePullOptions,
        offset_store: OffsetStore,
        on_changed: MessageQueueListener,
        *,
        queues: PulledQueues[None],
    ) -> None:
        super().__init__(instance, group, options, offset_store, on_changed)
        self._options, self._queues = options, queues
        self._admin = QueueAdmin(instance)

    def remove_unnecessary(self, queue: MessageQueue, process_queue: OwnedQueue) -> bool:
        # before its offset is stored, so that no message arrives afterwards
        self._queues.stop([queue])
        return super().remove_unnecessary(queue, process_queue)

    def compute_pull_from_where(self, queue: MessageQueue) -> int:
        return compute_pull_from_where(
            self._options.consume_from_where,
            queue,
            self.offset_store.read_offset(queue, ReadOffsetType.MEMORY_FIRST_THEN_STORE),
            max_offset=self._admin.max_offset,
            search_offset=self._admin.search_offset,
            consume_timestamp=self._options.consume_timestamp,
        )

    def dispatch(self, requests: Sequence[PullRequest[OwnedQueue]]) -> None:
        for request in requests:
            self._queues.start(PulledQueue(request.queue, None, request.next_offset))


#: Called with the topic and its queues. Source: `TopicMessageQueueChangeListener`.
TopicMessageQueueChangeListener: TypeAlias = Callable[[str, frozenset[MessageQueue]], object]


class TopicWatch:
    """Checks whether the queues of topics have changed, and calls listeners if so."""

    def __init__(self, fetch: Callable[[str], frozenset[MessageQueue]]) -> None:
        self._fetch = fetch
        self._lock = new_lock()
        self._listeners: dict[str, TopicMessageQueueChangeListener] = {}
        self._queues: dict[str, frozenset[MessageQueue]] = {}

    def register(self, topic: str, listener: TopicMessageQueueChangeListener) -> None:
        with self._lock:
            is_another = topic in self._listeners
            self._listeners[topic] = listener
        if is_another:
            _log.warning("Topic %s had been registered, new listener will overwrite the old one", topic)

    def fetch_all(self) -> None:
        for topic in self._topics():
            self.fetch(topic)

    def fetch(self, topic: str) -> None:
        queues = self._fetch_queues(topic)
        if queues is not None:
            with self._lock:
                self._queues[topic] = queues

    def compare(self) -> None:
        for topic in self._topics():
            queues = self._fetch_queues(topic)
            if queues is None:
                continue
            with self._lock:
                before, self._queues[topic] = self._queues.get(topic), queues
                listener = self._listeners.get(topic)
            if listener is not None and (before != queues or not queues):
                _tell(listener, topic, queues)

    def _topics(self) -> list[str]:
        with self._lock:
            return list(self._listeners)

    def _fetch_queues(self, topic: str) -> frozenset[MessageQueue] | None:
        try:
            return self._fetch(topic)
        except RmqError as error:
            _log.warning("the queues of topic %s cannot be looked up: %s", topic, error)
            return None


def _tell(listener: TopicMessageQueueChangeListener, topic: str, queues: frozenset[MessageQueue]) -> None:
    try:
        listener(topic, queues)
    except Exception:  # noqa: BLE001 - application code must not end a shared thread
        _log.exception("the listener of topic %s failed", topic)


class LitePullMember(ActiveMember):
    """The inner part of a lite pull consumer, which its client instance calls.

    Attributes:
        queues: The queues that are pulled; may be assigned before the start.
        watch: Checks topics for changed queues.
        type: Whether queues are subscribed to or assigned.
        on_arrival: Called when messages arrive, and at shutdown.
    """

    rebalance: RebalanceLitePull

    def __init__(
        self, group: str, config: ClientConfig, options: LitePullOptions, trace: AsyncTraceDispatcher | None
    ) -> None:
        super().__init__(group, config, options)
        self._options, self._trace = options, trace
        self.type: SubscriptionType = SubscriptionType.NONE
        self._threads = Scheduler("rmqfast-lite-pull", options.pull_threads)
        self.queues: Final[PulledQueues[None]] = PulledQueues(
            self._threads.later, subscription=self._subscription, begin=self._begin
        )
        self.watch: Final = TopicWatch(self.fetch_queues)
        self.on_arrival: Callable[[], object] | None = None
        self._check: Handle | None = None
        self._watcher: SubscriptionWatcher | None = None

    @property
    def consume_from_where(self) -> str:
        return str(self._options.consume_from_where)

    def subscribe(self, topic: str, expression: str | MessageSelector | None) -> None:
        with self.lock:
            self._set_type(SubscriptionType.SUBSCRIBE)
            subscription = build_subscription_data(wrap(self.config.namespace, topic), expression)
            self.wanted[subscription.topic] = subscription
            if self.is_running:
                self.queues.subscribe(self._subscription(subscription.topic) or subscription)
                self._update_routes()
                self._join()

    def unsubscribe(self, topic: str) -> None:
        with self.lock:
            wrapped = wrap(self.config.namespace, topic)
            self.wanted.pop(wrapped, None)
            self.queues.stop(pulled.queue for pulled in self.queues.queues() if pulled.queue.topic == wrapped)

    def assign(self, assigned: Sequence[MessageQueue]) -> None:
        with self.lock:
            self._set_type(SubscriptionType.ASSIGN)
            self.queues.stop(pulled.queue for pulled in self.queues.queues() if pulled.queue not in assigned)
            for queue in assigned:
                if self.queues.get(queue) is None:
                    self.queues.start(PulledQueue(queue, None))

    def fetch_queues(self, topic: str) -> frozenset[MessageQueue]:
        queues = self.admin.fetch_subscribe_message_queues(wrap(self.config.namespace, topic))
        return frozenset(map(self.without_namespace, queues))

    def subscriptions(self) -> Sequence[SubscriptionData]:
        """Returns the subscriptions for heartbeats. Empty if the application chooses the queues."""
        return list(self.wanted.values())

    def end_at_exit(self, deadline: float) -> None:
        self.queues.close()
        self._threads.stop(max(0.0, deadline - monotonic()))

    def not_running(self) -> ClientError:
        return ClientError(
            "The consumer not running, please start it first.",
            next_step=f"it is {self.state}: start it once, by start() or with; after shutdown() make another one",
        )

    def _make_rebalance(self, instance: ClientInstance, offsets: OffsetStore) -> RebalanceLitePull:
        return RebalanceLitePull(
            instance, self.group, self._options, offsets, self._on_queues_changed, queues=self.queues
        )

    def _owned_queues(self) -> Iterable[MessageQueue]:
        if self.type is SubscriptionType.ASSIGN:
            return [pulled.queue for pulled in self.queues.queues()]
        return self.rebalance.process_queues.copy()

    def _on_start(self) -> None:
        instance = self.instance
        self.queues.open(self._make_puller(), BrokerChoice(instance.routes.subscribe_address, instance.update_route))
        EXITS.add(self)
        interval = self._options.topic_metadata_check_interval
        self._check = instance.scheduler.every(min(_FIRST_CHECK, interval), interval, self._watch_topics)
        if self.type is SubscriptionType.SUBSCRIBE:
            self._update_routes()
        self.watch.fetch_all()
        instance.check_client_in_broker()
        self._join()
        self._watcher = SubscriptionWatcher(instance, self.group, self.subscriptions)
        self._watcher.start(instance.scheduler, instance.config.heartbeat_interval)
        if self._trace is not None:
            self._trace.start(Producer, instance.config)

    def _on_shutdown(self) -> None:
        EXITS.remove(self)
        if self._watcher is not None:
            self._watcher.stop()
        if self._check is not None:
            self._check.cancel()
        self.queues.close()
        self._threads.stop(_PATIENCE)
        if self._trace is not None:
            self._trace.shutdown()

    def _make_puller(self) -> Puller:
        options, config = self._options, self.instance.config
        signed = config.signer(is_stream=True) if config.access_key is not None else None
        return Puller(
            consumer_group=self.group,
            depth=options.pulls_in_flight,
            batch=options.pull_batch_size,
            suspend=options.broker_suspend,
            timeout=options.suspend_timeout,
            connect_timeout=config.connect_timeout,
            retry=options.pull_time_delay_when_exception,
            of_queue=(options.pull_threshold_for_queue, options.pull_threshold_size_for_queue),
            in_all=(options.pull_threshold_for_all, _MOST_OF_ALL),
            max_span=options.consume_max_span,
            tls=config.tls,
            ext_fields={"clientId": self.instance.client_id, **({} if signed else STREAM_FIELDS)},
            sign=signed,
            verify_crc=config.verify_crc,
            on_ready=self.on_arrival,
        )

    def _set_type(self, wanted: SubscriptionType) -> None:
        if self.type not in {SubscriptionType.NONE, wanted}:
            raise ClientError(
                "Subscribe and assign are mutually exclusive.", next_step="make another consumer for the other one"
            )
        self.type = wanted

    def _join(self) -> None:
        if self.type is SubscriptionType.SUBSCRIBE:
            self.instance.send_heartbeats()
            self.instance.rebalance_immediately()

    def _subscription(self, topic: str) -> SubscriptionData | None:
        if self.type is SubscriptionType.ASSIGN:
            return SubscriptionData(topic=topic, sub_version=0)
        subscription = self.wanted.get(topic)
        # brokers check the subscription's version if the pull does not carry the expression
        return replace(subscription, sub_version=0) if subscription and subscription.is_tag_type else subscription

    def _begin(self, queue: MessageQueue) -> int:
        return self.rebalance.compute_pull_from_where(queue)

    def _update_routes(self) -> None:
        for topic in list(self.wanted):
            self.instance.update_route(topic)

    def _watch_topics(self) -> None:
        self._threads.later(0.0, self.watch.compare)
