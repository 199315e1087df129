"""Topics of an embedded broker with a past: what streams read of them, and what became of them since."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import rmqfast
from rmqfast import Message, MessageQueue
from rmqfast._native import SparkStream, TopicRead
from rmqfast.spark.live.task import read_topic_piece
from tests.client.ranges.clusters import RestartableCluster

__all__ = ["COLUMNS", "Place", "Row", "Topic", "read_of", "rows_of", "topics_with_a_past"]

COLUMNS = ["topic", "broker_name", "queue_id", "queue_offset", "body", "store_timestamp"]
#: Queue and offset.
Place = tuple[int, int]
#: Body and time of storing.
Row = tuple[bytes, int]
_BROKER = "broker-a"
#: Messages of a batch, so that a stream has some positions.
_BATCH = 11


@dataclass
class Topic:
    """A topic, and the positions at which streams were before it changed.

    Attributes:
        name: Its name.
        life: What became of it.
        positions: Texts of checkpoints, one behind the other.
        rows: What it has now.
        bounds: The first offset and the one behind the last, by queue.
        is_same: Whether its messages at these positions are those that were there.
    """

    name: str
    life: str
    positions: list[str] = field(default_factory=list)
    rows: dict[Place, Row] = field(default_factory=dict)
    bounds: dict[int, tuple[int, int]] = field(default_factory=dict)
    is_same: bool = True


class _Broker:
    """A broker, and what is done to its topics."""

    def __init__(self, cluster: RestartableCluster) -> None:
        self.cluster = cluster
        self._admin = rmqfast.Admin(name_server=cluster.name_server)
        self._producer = rmqfast.Producer("losses", name_server=cluster.name_server)
        self._sent = 0

    def __enter__(self) -> Self:
        self._admin.start()
        self._producer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.shutdown()
        self._admin.shutdown()

    def create(self, topic: str, queues: int) -> None:
        self._admin.create_topic(topic, queues=queues)

    def set_queues(self, topic: str, queues: int) -> None:
        self._admin.topics.update(topic, queues=queues)

    def make_anew(self, topic: str, queues: int) -> None:
        self._admin.topics.delete(topic)
        self.create(topic, queues)

    def fill(self, topic: str, queues: int, count: int, size: int = 20) -> None:
        """So many messages in each queue."""
        for _ in range(count):
            for queue_id in range(queues):
                self._sent += 1
                # a body that does not compress takes its room in the log
                body = f"{topic} {self._sent} ".encode() + random.Random(self._sent).randbytes(size)
                self._producer.send(Message(topic, body), queue=MessageQueue(topic, _BROKER, queue_id))


@contextmanager
def topics_with_a_past(directory: Path) -> Iterator[tuple[str, list[Topic]]]:
    """A broker's name server and its topics."""
    with RestartableCluster(directory, fileReservedTime="0", deleteWhen="04") as cluster, _Broker(cluster) as broker:
        topics = [_retained(broker), *(_lived(broker, f"lived-{number}", life) for number, life in enumerate(_LIVES))]
        for topic in topics:
            read = read_of(cluster.name_server, topic.name, "topic batch")
            for piece in read.plan():
                topic.rows.update(rows_of(read, piece))
            stream = SparkStream.of_topic(read_of(cluster.name_server, topic.name, "topic stream"))
            ends = _offsets(stream.latest(None, is_limited=False), topic.name)
            begins = _offsets(stream.initial(), topic.name)
            topic.bounds = {queue_id: (begins[queue_id], end) for queue_id, end in ends.items()}
            stream.close()
            assert len(topic.rows) == sum(end - begin for begin, end in topic.bounds.values())
        yield cluster.name_server, topics


def read_of(name_server: str, topic: str, kind: str, **changes: str) -> TopicRead:
    """A read of all of a topic."""
    options = {"nameServer": name_server, "topic": topic, "startingOffsets": "earliest", "retryTimeoutMs": "3000"}
    return TopicRead(kind, options | changes, COLUMNS)


def rows_of(read: TopicRead, piece: bytes) -> Iterator[tuple[Place, Row]]:
    """The rows of a task."""
    for batch in read_topic_piece(read, piece):
        for row in batch.to_pylist():
            stored = int(row["store_timestamp"].timestamp() * 1000 + 0.5)
            yield (row["queue_id"], row["queue_offset"]), (row["body"], stored)


def _offsets(text: str, topic: str) -> dict[int, int]:
    return {int(queue_id): offset for queue_id, offset in json.loads(text)[topic][_BROKER].items()}


def _retained(broker: _Broker) -> Topic:
    """Its first messages have expired; the others of the broker came later."""
    topic = Topic("retained", "its first messages expired")
    broker.create(topic.name, 2)
    broker.fill(topic.name, 2, 18, size=50_000)
    topic.positions = _positions(broker, topic)
    broker.cluster.expire()
    broker.fill(topic.name, 2, 6)
    return topic


def _lived(broker: _Broker, name: str, life: str) -> Topic:
    change, is_same = _LIVES[life]
    topic = Topic(name, life, is_same=is_same)
    broker.create(name, 3)
    broker.fill(name, 3, 16)
    topic.positions = _positions(broker, topic)
    change(broker, name)
    return topic


def _positions(broker: _Broker, topic: Topic) -> list[str]:
    """The position of a stream after each batch."""
    stream = SparkStream.of_topic(
        read_of(broker.cluster.name_server, topic.name, "topic stream", maxOffsetsPerTrigger=str(_BATCH))
    )
    positions = [stream.initial()]
    while (end := stream.latest(positions[-1], is_limited=True)) != positions[-1]:
        positions.append(end)
    stream.close()
    return positions


def _anew(queues: int, count: int) -> Callable[[_Broker, str], None]:
    def change(broker: _Broker, topic: str) -> None:
        broker.make_anew(topic, queues)
        broker.fill(topic, queues, count)

    return change


def _widen(broker: _Broker, topic: str) -> None:
    broker.set_queues(topic, 5)
    broker.fill(topic, 5, 4)


#: What became of a topic, and whether its messages are the same ones.
_LIVES: dict[str, tuple[Callable[[_Broker, str], None], bool]] = {
    "nothing came": (lambda broker, topic: None, True),
    "it has grown": (lambda broker, topic: broker.fill(topic, 3, 9), True),
    "it has more queues": (_widen, True),
    "it has fewer queues": (lambda broker, topic: broker.set_queues(topic, 2), True),
    "it was made anew, empty": (_anew(3, 0), False),
    "it was made anew, shorter": (_anew(3, 5), False),
    "it was made anew, as long": (_anew(3, 16), False),
    "it was made anew, longer, with fewer queues": (_anew(2, 30), False),
}
