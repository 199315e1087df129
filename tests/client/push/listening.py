"""Consumers of tests, what they saw, and what brokers have of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from rmqfast import EmbeddedCluster, Message, MessageQueue
from rmqfast._native import MessageView
from rmqfast.client.instance import ClientConfig
from rmqfast.client.producer import Producer
from rmqfast.client.push import ConsumeConcurrentlyStatus, PushConsumer, PushTimings
from rmqfast.client.push.push_member import PushMember
from rmqfast.errors import ClientError
from tests.waiting import PATIENCE, until

#: What would take seconds takes a moment.
SHORT = PushTimings(
    illegal_offset=0.02,
    resubmit=0.05,
    lock_interval=0.2,
    first_lock=0.05,
    lock_retry=0.05,
    unlock_patience=0.02,
    unlock_delay=0.05,
    reset=0.02,
)
#: No request fails because the machine is busy.
PATIENT = ClientConfig(request_timeout=PATIENCE, connect_timeout=PATIENCE)


#: Makes a consumer, as `consumer`, through one face.
Make: TypeAlias = Callable[..., PushConsumer]


class Seen:
    """A listener that notes messages, and answers what a function says."""

    def __init__(self, answer: Callable[[Sequence[MessageView], Any], Any] | None = None) -> None:
        self.messages: list[MessageView] = []
        self._answer, self._changed = answer, threading.Condition()

    def __call__(self, messages: Sequence[MessageView], context: Any) -> Any:
        with self._changed:
            self.messages.extend(messages)
            self._changed.notify_all()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS if self._answer is None else self._answer(messages, context)

    @property
    def bodies(self) -> list[bytes]:
        """In the order in which they came."""
        return [message.body or b"" for message in self.messages]

    def wait(self, count: int) -> None:
        """Waits until so many messages came."""
        with self._changed:
            is_there = self._changed.wait_for(lambda: len(self.messages) >= count, PATIENCE)
        assert is_there, f"expected {count} messages, got {self.bodies}"


def consumer(cluster: EmbeddedCluster, group: str, listener: Any, *topics: str, **options: Any) -> PushConsumer:
    """One that is not started, and wants all of the topics; the listener of one of asyncio is `async def`."""
    orderly, config = options.pop("orderly", None), options.pop("config", PATIENT)
    kind = options.pop("kind", PushConsumer)
    # a listener that has returned is not yet one whose offset is noted: the end waits for that
    options.setdefault("await_termination_millis_when_shutdown", int(PATIENCE * 1000))
    made: PushConsumer = kind(group, name_server=cluster.name_server, config=config, timings=SHORT, **options)
    for topic in topics:
        made.subscribe(topic)
    made.register_message_listener(listener if kind is PushConsumer else _awaited(listener), orderly=orderly)
    return made


def _awaited(listener: Callable[..., Any]) -> Callable[..., Any]:
    """A listener that is called by way of the loop, and may wait all the same."""

    async def listen(messages: Sequence[MessageView], context: Any) -> Any:
        return await asyncio.to_thread(listener, messages, context)

    return listen


def member_of(one: PushConsumer) -> PushMember:
    """What is behind a consumer that was started: the one way of the tests to what it does inside."""
    member = getattr(one, "_twin", one)._member  # noqa: SLF001 - rounds of the rebalance and locks have no public face
    assert member is not None
    return member


def position(one: PushConsumer, queue: MessageQueue) -> int:
    """Where the group goes on in a queue, as the member says who has it; -1 where it does not know."""
    info = one.running_info()["mqTable"].get(queue)
    return -1 if info is None else int(info["commitOffset"])


def send(
    producer: Producer, topic: str, bodies: Sequence[bytes], queues: int = 1, **message: Any
) -> list[MessageQueue]:
    """Makes a topic, and sends messages from queue to queue; its queues."""
    producer.create_topic(topic, queues)
    targets = sorted(producer.fetch_publish_message_queues(topic))
    for number, body in enumerate(bodies):
        producer.send(Message(topic, body, **message), targets[number % queues], PATIENCE)
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
        found |= broker.state.offsets.table().get(f"{topic}@{group}", {})
    return found


def until_committed(cluster: EmbeddedCluster, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    """Waits until the brokers have these offsets; clients tell them without waiting for an answer."""
    until(lambda: committed(cluster, group, topic) == offsets, lambda: committed(cluster, group, topic))
