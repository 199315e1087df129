"""A topic that was deleted and made anew: no reading of it has its first messages, which are still in the log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import rmqfast
from rmqfast import Admin, EmbeddedCluster, Message, Producer
from rmqfast.store import MessageStore

#: Messages of the topic's first generation and of its second; its queues.
FIRST, SECOND, QUEUES = 23, 7, 2
Bodies = list[bytes]


def bodies(store: MessageStore, **arguments: object) -> Bodies:
    column = store.scan(**arguments).to_arrow().column("body")  # type: ignore[arg-type]
    return sorted(column.to_pylist())


def tail(store: MessageStore) -> Bodies:
    with store.tail("orders", start="begin", stop="end") as opened:
        return sorted(body for batch in opened for body in batch.column("body").to_pylist())


READINGS: dict[str, Callable[[MessageStore], Bodies]] = {
    "by queue": lambda store: bodies(store, topic="orders", way="queue"),
    "straight": lambda store: bodies(store, topic="orders", way="log"),
    "as planned": lambda store: bodies(store, topic="orders"),
    "on threads": lambda store: bodies(store, topic="orders", way="log", threads=2),
    "by tag": lambda store: bodies(store, topic="orders", way="log", tags=["a"]),
    "by key": lambda store: bodies(store, topic="orders", way="log", keys=[f"k{n}" for n in range(FIRST)]),
    "some queues": lambda store: bodies(store, topic="orders", way="log", queue_ids=[0, 1]),
    "of several topics": lambda store: [b for b in bodies(store, topic=["orders", "other"]) if b != b"x"],
    "as they come": tail,
}


@pytest.fixture(scope="module", params=["by rmqfast", "by RocketMQ"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose topic was deleted by this broker, or by RocketMQ's, which does not say so in a file of its own."""
    directory = tmp_path_factory.mktemp("cluster")
    with (
        EmbeddedCluster(store_dir=directory) as cluster,
        Admin(name_server=cluster.name_server) as admin,
        Producer("tests", name_server=cluster.name_server) as producer,
    ):
        admin.create_topic("other", queues=1)
        for generation, count in (("old", FIRST), ("new", SECOND)):
            admin.create_topic("orders", queues=QUEUES)
            for n in range(count):
                producer.send(Message("orders", f"{generation}{n}".encode(), keys=f"k{n}", tags="a"))
                producer.send(Message("other", b"x"))
            if generation == "old":
                admin.topics.delete("orders")
    store = next(directory.rglob("commitlog")).parent
    if request.param == "by RocketMQ":
        (store / "config/removedTopics.json").unlink()
    return store


@pytest.mark.parametrize("reading", READINGS)
def test_a_reading_has_the_messages_of_the_present_generation(reading: str, path: Path) -> None:
    with rmqfast.open_store(path) as store:
        assert READINGS[reading](store) == sorted(f"new{n}".encode() for n in range(SECOND))


def test_a_scan_of_the_whole_log_has_the_messages_of_both(path: Path) -> None:
    with rmqfast.open_store(path) as store:
        assert len(bodies(store)) == (FIRST + SECOND) * 2
