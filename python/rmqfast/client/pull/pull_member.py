"""A consumer that pulls by hand, while it runs: queues are shared out with the other members of its group.

Source: `DefaultMQPullConsumerImpl`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rmqfast.client.consumer import OffsetStore
from rmqfast.client.consumer.active_member import ActiveMember
from rmqfast.client.instance import ClientConfig, ClientInstance
from rmqfast.client.instance.namespaces import unwrap, wrap
from rmqfast.client.pull.options import PullOptions
from rmqfast.client.pull.rebalance_pull import RebalancePull
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.subscription_data import SubscriptionData


class PullMember(ActiveMember):
    """A consumer that pulls by hand, without its pulls.

    Attributes:
        registered: The topics whose queues are shared out.
    """

    rebalance: RebalancePull

    def __init__(self, group: str, config: ClientConfig, options: PullOptions) -> None:
        super().__init__(group, config, options)
        self._options = options
        self.registered: dict[str, None] = {}

    def subscriptions(self) -> Sequence[SubscriptionData]:
        """The subscriptions that heartbeats tell: the registered topics, each as a whole.

        Source: `DefaultMQPullConsumerImpl.subscriptions`.
        """
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
            shown = (frozenset(map(self.shown, queues)) for queues in (all_queues, mine))
            listener(unwrap(self.config.namespace, topic), *shown)
