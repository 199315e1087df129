"""Who uses a client instance: consumers and producers come and go, in the process that made it.

Source: `MQClientInstance.registerConsumer`, `unregisterConsumer`, `registerProducer`, `unregisterProducer`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod

from rmqfast.client.instance.inner import ConsumerInner, ProducerInner
from rmqfast.client.instance.members import Members
from rmqfast.errors import ForkError


class Membership(ABC):
    """The part of a client instance that knows its members.

    Attributes:
        client_id: What brokers know it as.
    """

    def __init__(self, client_id: str) -> None:
        self.client_id, self._members, self._pid = client_id, Members(), os.getpid()

    def register_consumer(self, group: str, consumer: ConsumerInner) -> None:
        """Adds a consumer.

        Raises:
            ClientError: The group has one in this instance.

        Source: `MQClientInstance.registerConsumer`.
        """
        self._check_process()
        self._members.add_consumer(group, consumer)

    def unregister_consumer(self, group: str) -> None:
        """Removes a consumer, and tells all brokers; what they do not take is logged.

        Source: `MQClientInstance.unregisterConsumer`.
        """
        if self._members.remove_consumer(group):
            self._leave(consumer_group=group)

    def register_producer(self, group: str, producer: ProducerInner) -> None:
        """Adds a producer.

        Raises:
            ClientError: The group has one in this instance.

        Source: `MQClientInstance.registerProducer`.
        """
        self._check_process()
        self._members.add_producer(group, producer)

    def unregister_producer(self, group: str) -> None:
        """Removes a producer, and tells all brokers; what they do not take is logged.

        Source: `MQClientInstance.unregisterProducer`.
        """
        if self._members.remove_producer(group):
            self._leave(producer_group=group)

    def consumer(self, group: str) -> ConsumerInner | None:
        """The consumer of a group."""
        return self._members.consumers().get(group)

    def producer(self, group: str) -> ProducerInner | None:
        """The producer of a group."""
        return self._members.producers().get(group)

    @abstractmethod
    def _leave(self, *, consumer_group: str | None = None, producer_group: str | None = None) -> None:
        """Tells all brokers that a group has no member here any more."""

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise ForkError(f"the client {self.client_id} is that of a parent process: make another one in this one")
