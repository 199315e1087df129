"""Where a group begins: three starting points, for a group that is new and for one that has an offset.

A queue has 100 messages; of a group that is known the offset is 70; the time is that of message 60. What counts first
is the offset that the broker has. For a new group the broker answers 0 as long as the queue was never shortened and its
first message is not too far behind the newest, so that all three begin at the first message, also
CONSUME_FROM_LAST_OFFSET. Only where the broker does not answer so does the starting point count.

How far is too far is `accessMessageInMemoryMaxRatio` of the broker's memory, 40 % as it ships. In a cluster of its own
the example shows both, the second time with 0 %; of another one it prints what that cluster does.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import Any

from place import Place, chosen, until
from rmqfast import Message, MessageQueue
from rmqfast.admin import Admin
from rmqfast.client.consumer import ConsumeFromWhere
from rmqfast.client.producer import Producer
from rmqfast.client.push import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, PushConsumer

STARTING_POINTS = (
    ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
    ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    ConsumeFromWhere.CONSUME_FROM_TIMESTAMP,
)


class Begun:
    """A group of one member, and the first offset that it got."""

    def __init__(self, place: Place, group: str, topic: str, where: ConsumeFromWhere, when: str) -> None:
        self.topic, self.offsets = topic, set[int]()
        self.consumer = PushConsumer(
            group, name_server=place.name_server, consume_from_where=where, consume_timestamp=when
        )
        self.consumer.subscribe(topic)
        self.consumer.register_message_listener(self.listen)

    def listen(self, messages: Sequence[Any], _context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        self.offsets.update(message.queue_offset for message in messages)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    def has_queue(self) -> bool:
        return any(queue.topic == self.topic for queue in self.consumer.running_info()["mqTable"])


def show(place: Place) -> None:
    topic = place.named("starting")
    with Admin(name_server=place.name_server) as admin, Producer("example", name_server=place.name_server) as producer:
        admin.create_topic(topic, queues=1)
        until(lambda: len(producer.fetch_publish_message_queues(topic)) == 1)
        queue, when = fill(producer, topic)
        ratio = admin.brokers.config(queue.broker_name)["accessMessageInMemoryMaxRatio"]
        print(
            f"accessMessageInMemoryMaxRatio={ratio}; 100 messages, 70 is the known group's offset, 60 that of the time"
        )
        print(f"{'consume_from_where':27} {'new group':>10} {'known group':>12}")
        with ExitStack() as stack:
            begun = {}
            for where in STARTING_POINTS:
                for kind in ("new", "known"):
                    word = where.removeprefix("CONSUME_FROM_").removesuffix("_OFFSET").lower()
                    group = place.named(f"{kind}_{word}")
                    if kind == "known":
                        admin.create_group(group)  # brokers of 5 take no offset of a group that they do not know
                        admin.offsets.reset(group, queue, 70, force=True)
                    begun[where, kind] = Begun(place, group, topic, where, when)
                    stack.enter_context(begun[where, kind].consumer)
            until(lambda: all(one.has_queue() for one in begun.values()))
            producer.send(Message(topic, b"message 100"), queue)  # who begins at the end gets this one first
            until(lambda: all(100 in one.offsets for one in begun.values()))
        for where in STARTING_POINTS:
            first = {kind: min(begun[where, kind].offsets) for kind in ("new", "known")}
            print(f"{where:27} {first['new']:>10} {first['known']:>12}")


def fill(producer: Producer, topic: str) -> tuple[MessageQueue, str]:
    """60 messages, a while, 40 more; the queue, and the second in which the latter began."""
    for number in range(60):
        producer.send(Message(topic, b"message %d" % number))
    when = int(time.time()) + 3  # whole seconds are all that a consumer can be told
    time.sleep(when + 0.05 - time.time())  # of messages of one millisecond 4.9 finds any
    sent = [producer.send(Message(topic, b"message %d" % number)) for number in range(60, 100)]
    return sent[-1].queue, datetime.fromtimestamp(when).strftime("%Y%m%d%H%M%S")  # noqa: DTZ006 - local, as RocketMQ has it


if __name__ == "__main__":
    with chosen(__doc__) as place:
        show(place)
    if place.is_own:
        print()
        with chosen(__doc__, {"accessMessageInMemoryMaxRatio": "0"}) as place:
            show(place)
