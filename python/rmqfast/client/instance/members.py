"""The consumers and producers of a client instance, and the routes that they need.

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
    """The methods of a consumer that its client instance calls."""

    @property
    def group(self) -> str:
        """The consumer group, with its namespace."""

    @property
    def consume_type(self) -> ConsumeType:
        """Whether the application pulls or a listener is called."""

    @property
    def message_model(self) -> MessageModel:
        """Whether consumers share the messages or each gets all of them."""

    @property
    def consume_from_where(self) -> str:
        """The name of RocketMQ's `ConsumeFromWhere`: the position at which a new group starts."""

    @property
    def is_unit_mode(self) -> bool:
        """Whether the consumer belongs to a unit, RocketMQ's term for a part of a deployment."""

    def subscriptions(self) -> Sequence[SubscriptionData]:
        """The subscriptions that heartbeats report."""

    def do_rebalance(self) -> None:
        """Distributes the queues of the consumer's topics again. Called on the rebalance thread."""

    def persist_consumer_offset(self) -> None:
        """Commits the consumer's offsets. Called on a thread of the scheduler."""

    def update_topic_subscribe_info(self, topic: str, queues: Sequence[MessageQueue]) -> None:
        """Called with the readable queues of a topic. Ignores topics to which the consumer does not subscribe."""

    def is_subscribe_topic_need_update(self, topic: str) -> bool:
        """Whether the consumer subscribes to the topic but does not know its queues yet."""

    def running_info(self) -> dict[str, Any]:
        """Returns the fields of RocketMQ's `ConsumerRunningInfo`."""

    def reset_offset(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Continues at the given offsets, as a broker has requested. May take long, so it runs on its own thread."""

    def consume_message_directly(self, message: Any, broker_name: str | None) -> dict[str, Any]:
        """Consumes one message now. Returns the fields of RocketMQ's `ConsumeMessageDirectlyResult`."""

    def consumer_status(self, topic: str) -> Mapping[MessageQueue, int]:
        """Returns the offsets in memory of a topic's queues."""


class ProducerInner(Protocol):
    """The methods of a producer that its client instance calls."""

    def publish_topics(self) -> Sequence[str]:
        """Returns the topics to which the producer has sent messages. Their routes are updated at intervals."""

    def check_transaction_state(self, address: str, message: Any, ext_fields: Mapping[str, str]) -> None:
        """Starts to check a transaction and to report its state to the broker. Does not wait for either.

        Args:
            address: Address of the asking broker, `ip:port`.
            message: The half message.
            ext_fields: The header of request 39: `tranStateTableOffset`, `commitLogOffset`, `msgId`, `transactionId`.
        """


class Members:
    """The consumers and producers of an instance. Each call is atomic and returns copies."""

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
        """Removes a consumer. Returns whether it existed."""
        with self._lock:
            return self._consumers.pop(group, None) is not None

    def remove_producer(self, group: str) -> bool:
        """Removes a producer. Returns whether it existed."""
        with self._lock:
            return self._producers.pop(group, None) is not None

    def consumers(self) -> Mapping[str, ConsumerInner]:
        with self._lock:
            return dict(self._consumers)

    def producers(self) -> Mapping[str, ProducerInner]:
        with self._lock:
            return dict(self._producers)

    def topics(self) -> list[str]:
        """Returns the topics whose routes the consumers and producers need, without duplicates."""
        published = [topic for producer in self.producers().values() for topic in producer.publish_topics()]
        return list(dict.fromkeys([*self.subscribed_topics(), *published]))

    def subscribed_topics(self) -> list[str]:
        """Returns the topics to which consumers subscribe, without duplicates."""
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
    """Resends messages that brokers did not take back. An instance creates it when first needed."""

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
