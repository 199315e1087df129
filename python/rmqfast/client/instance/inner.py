"""What a client instance needs of the consumers and producers that share it.

Source: `MQConsumerInner`, `MQProducerInner`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from rmqfast.client.instance.topic_publish_info import TopicPublishInfo
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

ConsumeType: TypeAlias = Literal["CONSUME_ACTIVELY", "CONSUME_PASSIVELY"]
MessageModel: TypeAlias = Literal["CLUSTERING", "BROADCASTING"]


class ConsumerInner(Protocol):
    """A consumer as its client instance sees it."""

    @property
    def group(self) -> str:
        """The consumer group, with its namespace."""

    @property
    def consume_type(self) -> ConsumeType:
        """Whether the application pulls, or is given messages."""

    @property
    def message_model(self) -> MessageModel:
        """Whether members share the messages, or get all of them each."""

    @property
    def consume_from_where(self) -> str:
        """Where a new group begins: a name of RocketMQ's `ConsumeFromWhere`."""

    @property
    def is_unit_mode(self) -> bool:
        """Whether it is of a unit."""

    def subscriptions(self) -> Sequence[SubscriptionData]:
        """What it wants: goes into heartbeats."""

    def do_rebalance(self) -> None:
        """Shares the queues of its topics out anew; is called on the rebalance thread."""

    def persist_consumer_offset(self) -> None:
        """Stores its offsets; is called on the timer's thread."""

    def update_topic_subscribe_info(self, topic: str, queues: Sequence[MessageQueue]) -> None:
        """Takes the queues that may be read of a topic that it subscribes to; ignores other topics."""

    def is_subscribe_topic_need_update(self, topic: str) -> bool:
        """Whether it subscribes to a topic and knows no queues of it."""

    def running_info(self) -> dict[str, Any]:
        """What it does right now: the members of RocketMQ's `ConsumerRunningInfo`."""

    def reset_offset(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Goes on elsewhere, because the broker says so; may take long, is called on a thread of its own.

        Source: `MQClientInstance.resetOffset`.
        """

    def consume_message_directly(self, message: Any, broker_name: str | None) -> dict[str, Any]:
        """Has one message consumed now: the members of RocketMQ's `ConsumeMessageDirectlyResult`."""

    def consumer_status(self, topic: str) -> Mapping[MessageQueue, int]:
        """The offsets of a topic's queues, as it has them in memory."""


class ProducerInner(Protocol):
    """A producer as its client instance sees it."""

    def publish_topics(self) -> Sequence[str]:
        """The topics that it has sent to: their routes are kept fresh."""

    def is_publish_topic_need_update(self, topic: str) -> bool:
        """Whether it sends to a topic and knows no queues of it."""

    def update_topic_publish_info(self, topic: str, info: TopicPublishInfo) -> None:
        """Takes the queues of a topic that may be written."""

    def check_transaction_state(self, address: str, message: Any, ext_fields: Mapping[str, str]) -> None:
        """Has a transaction looked up, and tells the broker at `address` how it ended; does not wait for it.

        Args:
            address: The broker that asks, `ip:port`.
            message: The half message.
            ext_fields: The header of request 39: `tranStateTableOffset`, `commitLogOffset`, `msgId`, `transactionId`.
        """
