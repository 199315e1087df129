"""Consumers of tests: what they saw, and how long that is waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from rmqfast import EmbeddedCluster, Message, MessageQueue
from rmqfast._native import MessageView
from rmqfast.client.producer import Producer
from rmqfast.client.push import ConsumeConcurrentlyStatus, PushConsumer, PushTimings
from rmqfast.errors import ClientError

PATIENCE = 60.0
#: What would take seconds takes a moment.
SHORT = PushTimings(
    illegal_offset=0.1,
    resubmit=0.2,
    lock_interval=0.5,
    first_lock=0.2,
    lock_retry=0.2,
    unlock_delay=0.2,
    suspended=0.1,
    reset=0.2,
)


class Seen:
    """A listener that notes messages, and answers what a function says."""

    def __init__(self, answer: Callable[[Sequence[MessageView], Any], Any] | None = None) -> None:
        self.messages: list[MessageView] = []
        self.threads: set[int] = set()
        self._answer, self._changed = answer, threading.Condition()

    def __call__(self, messages: Sequence[MessageView], context: Any) -> Any:
        with self._changed:
            self.messages.extend(messages)
            self.threads.add(threading.get_ident())
            self._changed.notify_all()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS if self._answer is None else self._answer(messages, context)

    @property
    def bodies(self) -> list[bytes]:
        """In the order in which they came."""
        return [message.body or b"" for message in self.messages]

    def wait(self, count: int, seconds: float = PATIENCE) -> None:
        """Waits until so many messages came."""
        with self._changed:
            is_there = self._changed.wait_for(lambda: len(self.messages) >= count, seconds)
        assert is_there, f"expected {count} messages in {seconds} s, got {self.bodies}"


def until(condition: Callable[[], object], seconds: float = PATIENCE, what: object = "") -> None:
    """Waits until something is so."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.01)


def consumer(cluster: EmbeddedCluster, group: str, listener: Any, *topics: str, **options: Any) -> PushConsumer:
    """One that is not started, and wants all of the topics."""
    orderly = options.pop("orderly", None)
    # a listener that has returned is not yet one whose offset is noted
    options.setdefault("await_termination_millis_when_shutdown", 5000)
    made = PushConsumer(group, name_server=cluster.name_server, timings=SHORT, **options)
    for topic in topics:
        made.subscribe(topic)
    made.register_message_listener(listener, orderly=orderly)
    return made


def send(
    producer: Producer, topic: str, bodies: Sequence[bytes], queues: int = 1, **message: Any
) -> list[MessageQueue]:
    """Makes a topic, and sends messages from queue to queue; its queues."""
    producer.create_topic(topic, queues)
    targets = sorted(producer.fetch_publish_message_queues(topic))
    for number, body in enumerate(bodies):
        producer.send(Message(topic, body, **message), targets[number % queues])
    return targets


def is_there(producer: Producer, topic: str) -> bool:
    """Whether the name server has a topic."""
    try:
        return bool(producer.fetch_publish_message_queues(topic))
    except ClientError:
        return False


def committed(cluster: EmbeddedCluster, group: str, topic: str) -> dict[int, int]:
    """The offsets of a group, as the brokers have them."""
    found: dict[int, int] = {}
    for broker in cluster.brokers:
        found |= broker.tables.offsets.table().get(f"{topic}@{group}", {})
    return found
