"""Topics to read: messages of all kinds on two brokers of a cluster in this process."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import rmqfast
from rmqfast import EmbeddedCluster, Message
from tests.disks import ROOMY

#: Small files: the log rolls, and a store costs little disk.
CONFIG = ROOMY | {
    "mappedFileSizeCommitLog": str(4 << 20),
    "mappedFileSizeConsumeQueue": str(3000 * 20),
    "maxHashSlotNum": "1000",
    "maxIndexNum": "4000",
    "enablePropertyFilter": "true",
    # retention is for tests that ask for it, however full the disk of the machine is
    "cleanFileForciblyEnable": "false",
}
#: Messages of `orders` in a `LiveCluster`.
MESSAGES = 1200
TAGS = ("paid", "refunded", "Aa", "BB", None)  # "Aa" and "BB" have the same hash


def cluster_in(directory: Path, brokers: int = 2, **config: str) -> EmbeddedCluster:
    """A cluster with a store for each broker below a directory."""
    return EmbeddedCluster(directory, brokers=brokers, config=CONFIG | config)


def create(cluster: EmbeddedCluster, topic: str, queues: int = 4, perm: int = 6) -> None:
    """Makes a topic on all brokers."""
    with rmqfast.Admin(name_server=cluster.name_server) as admin:
        admin.create_topic(topic, queues=queues, perm=perm)


def message(number: int, topic: str = "orders") -> Message:
    """A message of which each number has another kind: with tags or not, with keys, compressed."""
    chance = random.Random(number)
    body = chance.randbytes(chance.choice((1, 100, 1000))) if number % 50 else b"x" * 8000
    return Message(
        topic,
        body,
        tags=TAGS[number % len(TAGS)],
        keys=f"key-{number}" if number % 3 else None,
        properties={"number": str(number), "region": ("eu", "us")[number % 2]},
        flag=number % 7,
    )


def send(cluster: EmbeddedCluster, count: int, topic: str = "orders", first: int = 0) -> None:
    """Sends messages one by one, so that those with large bodies are compressed; queues in turn."""
    with rmqfast.Producer("tests", name_server=cluster.name_server) as producer:
        for number in range(first, first + count):
            producer.send(message(number, topic))


def fill(cluster: EmbeddedCluster, count: int, topic: str, body: bytes = b"x" * 100) -> None:
    """Sends many messages of the same kind, as batches."""
    with rmqfast.Producer("tests", name_server=cluster.name_server) as producer:
        producer.send_many([Message(topic, body, tags=("A", "B")[i % 2]) for i in range(count)])


def stores(directory: Path) -> dict[str, Path]:
    """The directories of the brokers' stores by name."""
    found = {path.name: path for path in directory.glob("broker-*") if path.is_dir()}
    return found or {"broker-a": directory}


@dataclass(frozen=True)
class LiveCluster:
    """A cluster, and where its stores are."""

    name_server: str
    directory: Path


@contextmanager
def live_cluster(directory: Path) -> Iterator[LiveCluster]:
    """Two brokers with the topic `orders`, which has four queues on each."""
    with cluster_in(directory) as cluster:
        create(cluster, "orders")
        send(cluster, MESSAGES)
        yield LiveCluster(cluster.name_server, directory)
