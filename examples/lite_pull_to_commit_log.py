"""A lite pull consumer, and where its offset leads: from the offset file to the record in the commit log.

40 messages are in a queue. One `poll` asks for 50 and gets 32, as a broker gives no more at a time. `commit_sync` notes
the offset in memory; the client tells the broker some seconds later, and the broker writes it to `consumerOffset.json`
some seconds after that. The offset is a number of entries of 20 bytes in the queue's file, and such an entry says where
in the commit log the message is. It takes about 20 seconds, most of them waiting for those two.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from place import Place, chosen, until
from rmqfast import Message, MessageQueue, open_store
from rmqfast.admin import Admin
from rmqfast.client.lite_pull import LitePullConsumer, LitePullOptions
from rmqfast.client.producer import Producer

# Of a queue's entry: offset in the commit log, size of the record, hash of the tag.
ENTRY = struct.Struct(">qiq")


def main(place: Place) -> None:
    topic, group = place.named("t2"), place.named("cpg")
    with Admin(name_server=place.name_server) as admin:
        queue = filled(place, admin, topic)
        offset = polled(place, admin, queue, group)
    if place.store is None:
        print("--store DIR says where the broker's store is: then the way goes on into its files")
        return
    in_file = walk(place.store, queue, group, offset)
    with consuming(place, topic, group) as consumer:
        first = next(iter(consumer.poll(30)))
        print(f"6. the next member of the group begins there: {first.body!r}, log offset {first.physical_offset}")
        assert first.physical_offset == in_file


def filled(place: Place, admin: Admin, topic: str) -> MessageQueue:
    """A topic of one queue with 40 messages in it."""
    admin.create_topic(topic, queues=1)
    with Producer("example", name_server=place.name_server) as producer:
        until(lambda: len(producer.fetch_publish_message_queues(topic)) == 1)
        sent = [producer.send(Message(topic, b"message %d" % number, tags="paid")) for number in range(40)]
    print("1. sent: 40 messages, queue 0 has offsets 0 to", sent[-1].queue_offset)
    return sent[-1].queue


@contextmanager
def consuming(place: Place, topic: str, group: str) -> Iterator[LitePullConsumer]:
    """A consumer that asks for 50 messages at a time."""
    options = LitePullOptions(pull_batch_size=50, auto_commit=False)
    consumer = LitePullConsumer(group, name_server=place.name_server, options=options)
    consumer.subscribe(topic, "*")
    with consumer:
        yield consumer


def polled(place: Place, admin: Admin, queue: MessageQueue, group: str) -> int:
    """The offset after one poll, once the broker knows it."""

    def at_broker() -> int:
        return max((row.consumer_offset for row in admin.groups.progress(group, queue.topic)), default=0)

    with consuming(place, queue.topic, group) as consumer:
        messages = consumer.poll(30)
        offsets = [message.queue_offset for message in messages]
        print(f"2. poll: asked for 50, got {len(messages)} with offsets {offsets[0]} to {offsets[-1]}")
        consumer.commit_sync()
        offset = consumer.committed(queue)
        print(f"3. commit_sync: the consumer notes {offset} in memory, and tells the broker every 5 s")
        until(lambda: at_broker() == offset)
    print(f"   the broker knows {offset}, and writes it to its file every 5 s")
    return offset


def walk(store_directory: Path, queue: MessageQueue, group: str, offset: int) -> int:
    """From the offset file to the record; gives the record's offset in the log."""
    topic, number = queue.topic, queue.queue_id
    with open_store(store_directory) as store:
        key = (topic, group)
        until(lambda: store.consumer_offsets().get(key, {}).get(number) == offset)
        print(f'   config/consumerOffset.json: "{topic}@{group}": {{{number}: {offset}}}')

        (queue_file,) = (store_directory / "consumequeue" / topic / str(number)).iterdir()
        with queue_file.open("rb") as file:
            file.seek(offset * ENTRY.size)
            log_offset, size, tag_hash = map(int, ENTRY.unpack(file.read(ENTRY.size)))
        print(f"4. consumequeue, entry {offset}, {ENTRY.size} bytes from byte {offset * ENTRY.size}:")
        print(f"   log offset {log_offset}, size {size}, tag hash {tag_hash}")

        message = store.message_at(log_offset)
        print(f"5. commitlog, {message.store_size} bytes from byte {message.physical_offset}:")
        print(f"   topic {message.topic}, queue {message.queue_id}, offset {message.queue_offset}, {message.body!r}")
        assert (message.store_size, message.queue_offset) == (size, offset)
    return log_offset


if __name__ == "__main__":
    with chosen(__doc__) as place:
        main(place)
