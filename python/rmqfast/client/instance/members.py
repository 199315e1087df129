"""The consumers and producers of a client instance, by group.

Source: `MQClientInstance.consumerTable`, `producerTable`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from rmqfast.client.instance.inner import ConsumerInner, ProducerInner
from rmqfast.errors import ClientError


class Members:
    """Who shares an instance; each call is one step to all threads, what is returned is a copy."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._consumers: dict[str, ConsumerInner] = {}
        self._producers: dict[str, ProducerInner] = {}

    def add_consumer(self, group: str, consumer: ConsumerInner) -> None:
        """Adds a consumer.

        Raises:
            ClientError: The group has one already.

        Source: `MQClientInstance.registerConsumer`.
        """
        with self._lock:
            if self._consumers.setdefault(group, consumer) is not consumer:
                raise _taken("consumer", group)

    def add_producer(self, group: str, producer: ProducerInner) -> None:
        """Adds a producer.

        Raises:
            ClientError: The group has one already.

        Source: `MQClientInstance.registerProducer`.
        """
        with self._lock:
            if self._producers.setdefault(group, producer) is not producer:
                raise _taken("producer", group)

    def remove_consumer(self, group: str) -> bool:
        """Removes a consumer; whether there was one."""
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
        """The topics that any of them needs the routes of, each once."""
        published = [topic for producer in self.producers().values() for topic in producer.publish_topics()]
        return list(dict.fromkeys([*self.subscribed_topics(), *published]))

    def subscribed_topics(self) -> list[str]:
        """The topics that consumers want, each once."""
        wanted = (s.topic for consumer in self.consumers().values() for s in consumer.subscriptions())
        return list(dict.fromkeys(wanted))

    def need_update(self, topic: str) -> bool:
        """Whether one of them lacks the queues of a topic.

        Source: `MQClientInstance.isNeedUpdateTopicRouteInfo`.
        """
        return self.lacks_queues(topic) or any(
            producer.is_publish_topic_need_update(topic) for producer in self.producers().values()
        )

    def lacks_queues(self, topic: str) -> bool:
        """Whether a consumer wants a topic and knows no queues of it."""
        return any(consumer.is_subscribe_topic_need_update(topic) for consumer in self.consumers().values())


def _taken(kind: str, group: str) -> ClientError:
    return ClientError(
        f"The {kind} group[{group}] has been created before, specify another name please.",
        next_step=f"one client id has one {kind} of a group: shut the other one down, or give another instance_name",
    )
