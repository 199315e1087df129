"""The running side of a pull consumer, and its rebalance.

Source: RocketMQ's `DefaultMQPullConsumerImpl`, `RebalancePullImpl`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rmqfast.client.consumer import OffsetStore, PullRequest, Rebalance
from rmqfast.client.consumer.active_member import ActiveMember
from rmqfast.client.consumer.rebalance import OwnedQueue
from rmqfast.client.instance import ClientConfig, ClientInstance
from rmqfast.client.instance.namespaces import unwrap, wrap
from rmqfast.client.pull.options import MessageQueueListener, PullOptions
from rmqfast.logs import logger_of
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

_log = logger_of(__name__)


class RebalancePull(Rebalance[OwnedQueue]):
    """Tells the application of its queues, and pulls none."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        options: PullOptions,
        offset_store: OffsetStore,
        listener: MessageQueueListener,
    ) -> None:
        super().__init__(instance, group, options.message_model, options.strategy, offset_store)
        self._listener = listener

    def new_process_queue(self, _queue: MessageQueue) -> OwnedQueue:
        return OwnedQueue()

    def remove_unnecessary(self, queue: MessageQueue, _process_queue: OwnedQueue) -> bool:
        self.offset_store.persist(queue)
        self.offset_store.remove_offset(queue)
        return True

    def compute_pull_from_where(self, _queue: MessageQueue) -> int:
        return 0

    def dispatch(self, requests: Sequence[PullRequest[OwnedQueue]]) -> None: ...

    def message_queue_changed(
        self, topic: str, all_queues: frozenset[MessageQueue], mine: frozenset[MessageQueue]
    ) -> None:
        try:
            self._listener(topic, all_queues, mine)
        except Exception:  # noqa: BLE001 - the application's, on a thread that others need
            _log.exception("group %s: messageQueueChanged exception", self.group)


class PullMember(ActiveMember):
    """A running pull consumer.

    Attributes:
        registered: The topics whose queues are shared out.
    """

    rebalance: RebalancePull

    def __init__(self, group: str, config: ClientConfig, options: PullOptions) -> None:
        super().__init__(group, config, options)
        self._options = options
        self.registered: dict[str, None] = {}

    def subscriptions(self) -> Sequence[SubscriptionData]:
        namespace = self.config.namespace
        return [SubscriptionData(topic=wrap(namespace, topic), sub_version=0) for topic in self.registered]

    def _make_rebalance(self, instance: ClientInstance, offsets: OffsetStore) -> RebalancePull:
        self.wanted.update({subscription.topic: subscription for subscription in self.subscriptions()})
        return RebalancePull(instance, self.group, self._options, offsets, self._tell_listener)

    def _owned_queues(self) -> Iterable[MessageQueue]:
        return self.rebalance.process_queues.copy()

    def _tell_listener(self, topic: str, all_queues: frozenset[MessageQueue], mine: frozenset[MessageQueue]) -> None:
        listener = self._options.message_queue_listener
        if listener is not None:
            shown = (frozenset(map(self.without_namespace, queues)) for queues in (all_queues, mine))
            listener(unwrap(self.config.namespace, topic), *shown)
