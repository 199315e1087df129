"""The consumers and producers of a client instance, and their common needs.

Source: `MQConsumerInner`, `MQProducerInner`, `MQClientInstance.consumerTable`, `producerTable`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from rmqfast.errors import ClientError
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from rmqfast.threads import new_lock

#: Whether the application pulls, or a listener is called.
ConsumeType: TypeAlias = Literal["CONSUME_ACTIVELY", "CONSUME_PASSIVELY"]
#: Whether each message goes to one member of the group, or to every member.
MessageModel: TypeAlias = Literal["CLUSTERING", "BROADCASTING"]


class ConsumerInner(Protocol):
    """The interface of consumers that a client instance uses."""

    @property
    def group(self) -> str:
        """The consumer group, with its namespace."""

    @property
    def consume_type(self) -> ConsumeType:
        """Whether the application pulls, or a listener is called."""

    @property
    def message_model(self) -> MessageModel:
        """Whether members share the messages, or each member gets all messages."""

    @property
    def consume_from_where(self) -> str:
        """Name of RocketMQ's `ConsumeFromWhere`: the start position of a new group."""

    @property
    def is_unit_mode(self) -> bool:
        """Whether the consumer belongs to a unit."""

    def subscriptions(self) -> Sequence[SubscriptionData]:
        """The subscriptions, for heartbeats."""

    def do_rebalance(self) -> None:
        """Allocates the queues of its topics again; called on the rebalance thread."""

    def persist_consumer_offset(self) -> None:
        """Commits its offsets; called on the timer's thread."""

    def update_topic_subscribe_info(self, topic: str, queues: Sequence[MessageQueue]) -> None:
        """Called with the readable queues of a topic; ignores topics that the consumer does not subscribe to."""

    def is_subscribe_topic_need_update(self, topic: str) -> bool:
        """Whether the consumer subscribes to the topic, but does not know its queues."""

    def running_info(self) -> dict[str, Any]:
        """Returns the members of RocketMQ's `ConsumerRunningInfo`."""

    def reset_offset(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Continues at these offsets on request of a broker; may take long, so it runs on a separate thread."""

    def consume_message_directly(self, message: Any, broker_name: str | None) -> dict[str, Any]:
        """Consumes one message now; returns the members of RocketMQ's `ConsumeMessageDirectlyResult`."""

    def consumer_status(self, topic: str) -> Mapping[MessageQueue, int]:
        """Returns the offsets of a topic's queues in memory."""


class ProducerInner(Protocol):
    """The interface of producers that a client instance uses."""

    def publish_topics(self) -> Sequence[str]:
        """Returns the topics that it has sent to, whose routes are updated regularly."""

    def check_transaction_state(self, address: str, message: Any, ext_fields: Mapping[str, str]) -> None:
        """Starts checking a transaction and reporting its state to the broker; does not wait for it.

        Args:
            address: Address of the asking broker, `ip:port`.
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
        with self._lock:
            if self._consumers.setdefault(group, consumer) is not consumer:
                raise _has_member("consumer", group)

    def add_producer(self, group: str, producer: ProducerInner) -> None:
        with self._lock:
            if self._producers.setdefault(group, producer) is not producer:
                raise _has_member("producer", group)

    def remove_consumer(self, group: str) -> bool:
        """Removes a consumer; returns whether it existed."""
        with self._lock:
            return self._consumers.pop(group, None) is not None

    def remove_producer(self, group: str) -> bool:
        """Removes a producer; returns whether it existed."""
        with self._lock:
            return self._producers.pop(group, None) is not None

    def consumers(self) -> Mapping[str, ConsumerInner]:
        with self._lock:
            return dict(self._consumers)

    def producers(self) -> Mapping[str, ProducerInner]:
        with self._lock:
            return dict(self._producers)

    def topics(self) -> list[str]:
        """Returns the topics whose routes the members need, without duplicates."""
        published = [topic for producer in self.producers().values() for topic in producer.publish_topics()]
        return list(dict.fromkeys([*self.subscribed_topics(), *published]))

    def subscribed_topics(self) -> list[str]:
        """Returns the topics that consumers subscribe to, without duplicates."""
        topics = (s.topic for consumer in self.consumers().values() for s in consumer.subscriptions())
        return list(dict.fromkeys(topics))

    def lacks_queues(self, topic: str) -> bool:
        return any(consumer.is_subscribe_topic_need_update(topic) for consumer in self.consumers().values())


def _has_member(kind: str, group: str) -> ClientError:
    return ClientError(
        f"The {kind} group[{group}] has been created before, specify another name please.",
        next_step=f"one client id has one {kind} of a group: shut the other one down, or give another instance_name",
    )


class InnerProducer:
    """The producer of an instance that resends messages which brokers did not take back; created at first use."""

    #: Set by `rmqfast.client.producer`, because producers import instances and not the other way round.
    factory: ClassVar[Callable[[Any], Any] | None] = None

    def __init__(self) -> None:
        self._lock, self._made = new_lock(), None

    def get(self, instance: Any) -> Any:
        with self._lock:
            if self._made is None:
                if self.factory is None:
                    raise ClientError("there is no inner producer", next_step="import rmqfast.client.producer first")
                self._made = type(self).factory(instance)  # type: ignore[misc]
            return self._made
