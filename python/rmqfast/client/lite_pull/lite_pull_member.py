"""A lite pull consumer while it runs: its queues are pulled, and shared out with the other members of its group.

Source: `DefaultLitePullConsumerImpl`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Final

from rmqfast._native import Puller
from rmqfast.client.consumer import MessageSelector, OffsetStore, build_subscription_data
from rmqfast.client.consumer.active_member import ActiveMember
from rmqfast.client.consumer.subscription_watcher import SubscriptionWatcher
from rmqfast.client.instance import ClientConfig, ClientInstance, Handle
from rmqfast.client.instance.exits import EXITS
from rmqfast.client.instance.namespaces import unwrap, wrap
from rmqfast.client.instance.scheduler import Scheduler
from rmqfast.client.lite_pull.options import LitePullOptions
from rmqfast.client.lite_pull.rebalance_lite_pull import RebalanceLitePull
from rmqfast.client.lite_pull.topic_watch import TopicWatch
from rmqfast.client.producer import Producer
from rmqfast.client.pulling.broker_choice import BrokerChoice
from rmqfast.client.pulling.pulled_queues import PulledQueue, PulledQueues
from rmqfast.client.trace import AsyncTraceDispatcher
from rmqfast.errors import ClientError
from rmqfast.logs import logger_of
from rmqfast.message import MessageQueue
from rmqfast.remoting.credentials import STREAM_FIELDS
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from rmqfast.system import monotonic

_log = logger_of(__name__)

_FIRST_CHECK = 10.0
#: Bytes of all queues together, beside the messages that the options allow.
_MOST_OF_ALL = 64 << 20
#: How long an end waits for its threads, in seconds.
_PATIENCE = 1.0


class SubscriptionType(Enum):
    """Whether the group's members share the queues, or the application says which it wants."""

    NONE = "NONE"
    SUBSCRIBE = "SUBSCRIBE"
    ASSIGN = "ASSIGN"


class LitePullMember(ActiveMember):
    """A lite pull consumer without its polls.

    Attributes:
        queues: What is pulled, before the start as well.
        watch: Looks whether topics have got other queues.
        type: How it comes to its queues.
        on_arrival: Called whenever messages came, and at the end.
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
            self._threads, subscription=self._subscription, begin=self._begin
        )
        self.watch: Final = TopicWatch(self.fetch_queues)
        self.on_arrival: Callable[[], object] | None = None
        self._check: Handle | None = None
        self._watcher: SubscriptionWatcher | None = None

    @property
    def consume_from_where(self) -> str:
        """Where a new group begins."""
        return str(self._options.consume_from_where)

    def subscribe(self, topic: str, expression: str | MessageSelector | None) -> None:
        """Wants messages of a topic.

        Raises:
            ClientError: The expression is none, or queues are assigned.
        """
        with self.lock:
            self._set_type(SubscriptionType.SUBSCRIBE)
            subscription = build_subscription_data(wrap(self.config.namespace, topic), expression)
            self.wanted[subscription.topic] = subscription
            if self.is_running:
                self.queues.subscribe(self._subscription(subscription.topic) or subscription)
                self._update_routes()
                self._join()

    def unsubscribe(self, topic: str) -> None:
        """Wants messages of a topic no more; their backlog is thrown away."""
        with self.lock:
            wrapped = wrap(self.config.namespace, topic)
            self.wanted.pop(wrapped, None)
            self.queues.stop(pulled.queue for pulled in self.queues.queues() if pulled.queue.topic == wrapped)

    def assign(self, assigned: Sequence[MessageQueue]) -> None:
        """Wants the messages of these queues, and no others.

        Raises:
            ClientError: Topics are subscribed to.
        """
        with self.lock:
            self._set_type(SubscriptionType.ASSIGN)
            self.queues.stop(pulled.queue for pulled in self.queues.queues() if pulled.queue not in assigned)
            for queue in assigned:
                if self.queues.get(queue) is None:
                    self.queues.start(PulledQueue(queue, None))

    def fetch_queues(self, topic: str) -> frozenset[MessageQueue]:
        """The queues of a topic that may be read, as a name server has them now.

        Raises:
            ClientError: Nobody has the topic, or no name server answers.
        """
        queues = self.admin.fetch_subscribe_message_queues(wrap(self.config.namespace, topic))
        return frozenset(map(self.shown, queues))

    def subscriptions(self) -> Sequence[SubscriptionData]:
        """The subscriptions that heartbeats tell; none where queues are assigned."""
        return list(self.wanted.values())

    def end_at_exit(self, deadline: float) -> None:
        """Pulls no more, as the interpreter ends."""
        self.queues.close()
        self._threads.stop(max(0.0, deadline - monotonic()))

    def not_running(self) -> ClientError:
        """The error of a consumer that was not started, or has ended."""
        return ClientError(
            "The consumer not running, please start it first.",
            next_step=f"it is {self.state}: start it once, by start() or with; after shutdown() make another one",
        )

    def _make_rebalance(self, instance: ClientInstance, offsets: OffsetStore) -> RebalanceLitePull:
        return RebalanceLitePull(
            instance, self.group, self._options, offsets, queues=self.queues, on_changed=self._queues_changed
        )

    def _owned_queues(self) -> Iterable[MessageQueue]:
        """Source: `DefaultLitePullConsumerImpl.persistConsumerOffset`."""
        if self.type is SubscriptionType.ASSIGN:
            return [pulled.queue for pulled in self.queues.queues()]
        return self.rebalance.process_queues.copy()

    def _started(self) -> None:
        """Source: `DefaultLitePullConsumerImpl.operateAfterRunning`."""
        instance = self.instance
        self.queues.open(self._make_puller(), BrokerChoice(instance.subscribe_address, instance.update_route))
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

    def _ended(self) -> None:
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
            ext_fields=None if signed else dict(STREAM_FIELDS),
            sign=signed,
            verify_crc=config.verify_crc,
            on_ready=self.on_arrival,
        )

    def _set_type(self, wanted: SubscriptionType) -> None:
        """Source: `DefaultLitePullConsumerImpl.setSubscriptionType`."""
        if self.type not in {SubscriptionType.NONE, wanted}:
            raise ClientError(
                "Subscribe and assign are mutually exclusive.", next_step="make another consumer for the other one"
            )
        self.type = wanted

    def _join(self) -> None:
        """Tells the brokers what it wants, and takes its queues; Java's waits up to a second for a heartbeat."""
        if self.type is SubscriptionType.SUBSCRIBE:
            self.instance.send_heartbeats()
            self.instance.rebalance_immediately()

    def _queues_changed(self, topic: str, all_queues: frozenset[MessageQueue], mine: frozenset[MessageQueue]) -> None:
        """The rebalance has given it queues, or taken some away.

        Source: `DefaultLitePullConsumerImpl.MessageQueueListenerImpl`.
        """
        listener = self._options.message_queue_listener
        if listener is not None:
            shown = (frozenset(map(self.shown, queues)) for queues in (all_queues, mine))
            try:
                listener(unwrap(self.config.namespace, topic), *shown)
            except Exception:  # noqa: BLE001 - the application's, on a thread that others need
                _log.exception("group %s: messageQueueChanged exception", self.group)

    def _subscription(self, topic: str) -> SubscriptionData | None:
        """Source: `DefaultLitePullConsumerImpl.PullTaskImpl.run`."""
        if self.type is SubscriptionType.ASSIGN:
            return SubscriptionData(topic=topic, sub_version=0)
        subscription = self.wanted.get(topic)
        # brokers look at the version of an expression that the pull does not carry itself
        return replace(subscription, sub_version=0) if subscription and subscription.is_tag_type else subscription

    def _begin(self, queue: MessageQueue) -> int:
        return self.rebalance.compute_pull_from_where(queue)

    def _update_routes(self) -> None:
        """Source: `DefaultLitePullConsumerImpl.updateTopicSubscribeInfoWhenSubscriptionChanged`."""
        for topic in list(self.wanted):
            self.instance.update_route(topic)

    def _watch_topics(self) -> None:
        self._threads.later(0.0, self.watch.compare)
