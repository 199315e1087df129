"""Topics that are filled, and what is read of them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from rmqfast import EmbeddedCluster, Message, MessageQueue
from rmqfast._native import MessageView
from rmqfast.client.producer import Producer

_numbers = count()


def fresh(name: str) -> str:
    """A name that no other test has."""
    return f"{name}{next(_numbers)}"


def fill(cluster: EmbeddedCluster, topic: str, messages: int, queues: int = 2) -> list[MessageQueue]:
    """Sends `p0`, `p1`... to the queues by turns, with tags `t0` to `t4` and a property `n`; gives the queues."""
    with Producer("filler", name_server=cluster.name_server) as producer:
        producer.create_topic(topic, queues)
        found = producer.fetch_publish_message_queues(topic)
        send(producer, topic, found, range(messages))
    return found


def send(producer: Producer, topic: str, queues: list[MessageQueue], numbers: Iterable[int]) -> None:
    """Sends `p` and the number to the queues by turns."""
    for number in numbers:
        message = Message(topic, b"p%d" % number, tags=f"t{number % 5}", properties={"n": str(number)})
        producer.send(message, queues[number % len(queues)])


def bodies(messages: Iterable[MessageView]) -> list[str]:
    """What messages say."""
    return [(message.body or b"").decode() for message in messages]
