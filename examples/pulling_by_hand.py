"""Pulling by hand: which queues there are, where to go on, and what each answer means.

The application asks for the queues, pulls from each of them, and keeps the offsets: nothing is noted for it. A pull
ends with one of four words, and always says where to go on. The offset that is fetched may be -1, where nobody knows
one, or -2, where no broker answers; both are no offsets to pull from. At the end the offsets are given to the broker,
queue by queue, and a second consumer of the group goes on there. It takes ten seconds or so, as brokers look every five
seconds whether a pull that they hold is over.
"""

from __future__ import annotations

from place import Place, chosen, until
from rmqfast import Message, MessageQueue
from rmqfast.admin import Admin
from rmqfast.client.producer import Producer
from rmqfast.client.pull import PullConsumer, PullOptions, PullResult, PullStatus
from rmqfast.errors import ClientError

# How long a broker holds a pull that finds nothing; 20 s unless told otherwise.
OPTIONS = PullOptions(broker_suspend=1.0)


def main(place: Place) -> None:
    topic, group = place.named("by_hand"), place.named("hands")
    with Admin(name_server=place.name_server) as admin, Producer("example", name_server=place.name_server) as producer:
        admin.create_topic(topic, queues=2)
        until(lambda: len(producer.fetch_publish_message_queues(topic)) == 2)
        queues = producer.fetch_publish_message_queues(topic)
        for number in range(70):
            tag = "odd" if number % 2 else "even"
            producer.send(Message(topic, b"%d" % number, tags=tag), queues[1 if number < 64 else 0])

        with PullConsumer(group, name_server=place.name_server, options=OPTIONS) as consumer:
            found = consumer.fetch_subscribe_message_queues(topic)
            print(f"queues of the topic: {[queue.queue_id for queue in found]}; each pull asks for 32 messages")
            for queue in found:
                offset = pull_all(consumer, queue)
                consumer.offset_store.update_to_broker(queue, offset, oneway=False)
            pull_elsewhere(consumer, found[1])

        producer.send(Message(topic, b"one more"), queues[1])
        with PullConsumer(group, name_server=place.name_server, options=OPTIONS) as consumer:
            offset = consumer.fetch_consume_offset(queues[1], from_store=True)
            (message,) = consumer.pull(queues[1], "*", offset, 32).messages
            print(f"another consumer of the group goes on at {offset}: {message.body!r}")


def pull_all(consumer: PullConsumer, queue: MessageQueue) -> int:
    """Pulls until there is nothing more; the offset to go on at."""
    fetched = consumer.fetch_consume_offset(queue, from_store=False)
    offset = max(fetched, 0)
    print(f"queue {queue.queue_id}: the group's offset is {fetched}")
    while True:
        result = consumer.pull_block_if_not_found(queue, "*", offset, 32)
        tell("*", offset, result)
        offset = result.next_begin_offset
        consumer.update_consume_offset(queue, offset)  # in memory
        if result.status is PullStatus.NO_NEW_MSG:
            return offset


def pull_elsewhere(consumer: PullConsumer, queue: MessageQueue) -> None:
    """What there is besides messages and the end of the queue."""
    print(f"queue {queue.queue_id} once more:")
    for expression, offset in (("odd", 0), ("none of them", 0), ("*", 1000)):
        tell(expression, offset, consumer.pull(queue, expression, offset, 32))
    try:
        consumer.pull(queue, "*", -1, 32)
    except ClientError as error:
        print(f"  from   -1: {str(error).splitlines()[0]}")


def tell(expression: str, offset: int, result: PullResult) -> None:
    """Prints a pull and its result."""
    status, count = result.status, len(result.messages)
    print(f"  from {offset:4}, {expression!r:14}: {status:14} {count:2} messages, next {result.next_begin_offset}")


if __name__ == "__main__":
    with chosen(__doc__) as place:
        main(place)
