"""Holds the consumers and producers of a client instance, and says what the instance needs of them.

Source: `MQConsumerInner`, `MQProducerInner`, `MQClientInstance.consumerTable`, `producerTable`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from rmqfast.errors import ClientError
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from rmqfast.threads import new_lock

#: How a group consumes: it pulls by itself, or it is pushed to.
ConsumeType: TypeAlias = Literal["CONSUME_ACTIVELY", "CONSUME_PASSIVELY"]
#: Each message once for the group, or once for each member.
MessageModel: TypeAlias = Literal["CLUSTERING", "BROADCASTING"]


class ConsumerInner(Protocol):
    """The consumer interface that a client instance uses."""

    @property
    def group(self) -> str:
        """The consumer group, with its namespace."""

    @property
    def consume_type(self) -> ConsumeType:
        """Whether the application pulls, or a listener gets the messages."""

    @property
    def message_model(self) -> MessageModel:
        """Whether members share the messages, or get all of them each."""

    @property
    def consume_from_where(self) -> str:
        """A name of RocketMQ's `ConsumeFromWhere`, for a new group."""

    @property
    def is_unit_mode(self) -> bool:
        """Whether it belongs to a unit."""

    def subscriptions(self) -> Sequence[SubscriptionData]:
        """The subscriptions, for heartbeats."""

    def do_rebalance(self) -> None:
        """Allocates the queues of its topics anew; runs on the rebalance thread."""

    def persist_consumer_offset(self) -> None:
        """Commits its offsets; runs on the timer's thread."""

    def update_topic_subscribe_info(self, topic: str, queues: Sequence[MessageQueue]) -> None:
        """Takes the readable queues of a topic that it subscribes to; ignores other topics."""

    def is_subscribe_topic_need_update(self, topic: str) -> bool:
        """Whether it subscribes to a topic whose queues it does not know."""

    def running_info(self) -> dict[str, Any]:
        """The members of RocketMQ's `ConsumerRunningInfo`."""

    def reset_offset(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Continues at these offsets, as the broker demands; may take long, runs on a thread of its own."""

    def consume_message_directly(self, message: Any, broker_name: str | None) -> dict[str, Any]:
        """Consumes one message now; returns the members of RocketMQ's `ConsumeMessageDirectlyResult`."""

    def consumer_status(self, topic: str) -> Mapping[MessageQueue, int]:
        """The offsets of a topic's queues in memory."""


class ProducerInner(Protocol):
    """The producer interface that a client instance uses."""

    def publish_topics(self) -> Sequence[str]:
        """The topics that it has sent to; their routes are kept fresh."""

    def check_transaction_state(self, address: str, message: Any, ext_fields: Mapping[str, str]) -> None:
        """Starts the check of a transaction, which tells the broker how it ended; does not wait for it.

        Args:
            address: The broker that asks, `ip:port`.
            message: The half message.
            ext_fields: The header of request 39: `tranStateTableOffset`, `commitLogOffset`, `msgId`, `transactionId`.
        """


class Members:
    """The members of an instance; each call is atomic and returns copies."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._consumers: dict[str, ConsumerInner] = {}
        self._producers: dict[str, ProducerInner] = {}

    def add_consumer(self, group: str, consumer: ConsumerInner) -> None:
        """Adds a consumer."""
        with self._lock:
            if self._consumers.setdefault(group, consumer) is not consumer:
                raise _has_member("consumer", group)

    def add_producer(self, group: str, producer: ProducerInner) -> None:
        """Adds a producer."""
        with self._lock:
            if self._producers.setdefault(group, producer) is not producer:
                raise _has_member("producer", group)

    def remove_consumer(self, group: str) -> bool:
        """Removes a consumer; returns whether there was one."""
        with self._lock:
            return self._consumers.pop(group, None) is not None

    def remove_producer(self, group: str) -> bool:
        """Removes a producer; whether there was one."""
        with self._lock:
            return self._producers.pop(group, None) is not None

    def consumers(self) -> Mapping[str, ConsumerInner]:
        """The consumers."""
        with self._lock:
            return dict(self._consumers)

    def producers(self) -> Mapping[str, ProducerInner]:
        """The producers."""
        with self._lock:
            return dict(self._producers)

    def topics(self) -> list[str]:
        """The topics whose routes the members need, each once."""
        published = [topic for producer in self.producers().values() for topic in producer.publish_topics()]
        return list(dict.fromkeys([*self.subscribed_topics(), *published]))

    def subscribed_topics(self) -> list[str]:
        """The topics that consumers subscribe to, each once."""
        topics = (s.topic for consumer in self.consumers().values() for s in consumer.subscriptions())
        return list(dict.fromkeys(topics))

    def lacks_queues(self, topic: str) -> bool:
        """Whether a consumer lacks the queues of a topic."""
        return any(consumer.is_subscribe_topic_need_update(topic) for consumer in self.consumers().values())


def _has_member(kind: str, group: str) -> ClientError:
    return ClientError(
        f"The {kind} group[{group}] has been created before, specify another name please.",
        next_step=f"one client id has one {kind} of a group: shut the other one down, or give another instance_name",
    )


class InnerProducer:
    """The producer of an instance for its consumers: resends what a broker did not take back; made on first use."""

    #: `rmqfast.client.producer` sets it: producers import instances, not the other way round.
    factory: ClassVar[Callable[[Any], Any] | None] = None

    def __init__(self) -> None:
        self._lock, self._made = new_lock(), None

    def get(self, instance: Any) -> Any:
        """The producer of an instance."""
        with self._lock:
            if self._made is None:
                if self.factory is None:
                    raise ClientError("there is no inner producer", next_step="import rmqfast.client.producer first")
                self._made = type(self).factory(instance)  # type: ignore[misc]
            return self._made
