"""Counts the calls, files and crossings into Rust of what the package does most: python -m tests.walks [-o json]

A walk is traced in a warm process, on a cluster in this process: what is called on the thread that asks, and for the
task of a Spark read what reads it. The pull through the broker is Rust and is not traced.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import rmqfast
from rmqfast import EmbeddedCluster, LitePullConsumer, Message, MessageQueue, Producer, open_store
from tests.waiting import until

PACKAGE = str(Path(rmqfast.__file__).parent)
#: Messages that are there to be read.
COUNT = 64


@dataclass
class Walk:
    """What was called.

    Attributes:
        name: What was done.
        calls: Functions of the package that were entered.
        files: In how many files they are.
        changes: How often one called another one of another file.
        crossings: Calls of functions and methods of the extension; making one of its objects is not seen.
        target: The calls and files that it should take, at most.
    """

    name: str
    calls: int
    files: int
    changes: int
    crossings: int
    target: tuple[int, int] | None = None


class Trace:
    """Counts calls on one thread."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self.crossings = self._at_last_crossing = 0

    @contextmanager
    def on(self) -> Iterator[Trace]:
        """Counts from here to the end of the block."""
        sys.setprofile(self._note)
        try:
            yield self
        finally:
            sys.setprofile(None)

    def walk(self, name: str, target: tuple[int, int] | None = None, *, to_rust: bool = False) -> Walk:
        """What was counted; `to_rust`: up to the last call into the extension."""
        entered = self.entered[: self._at_last_crossing] if to_rust else self.entered
        changes = sum(one != other for one, other in pairwise(entered))
        return Walk(name, len(entered), len(set(entered)), changes, self.crossings, target)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(PACKAGE):
            self.entered.append(file)
        elif event == "c_call" and file.startswith(PACKAGE):
            owner = getattr(argument, "__self__", None)
            module = getattr(argument, "__module__", None) or type(owner).__module__
            if "_rmqfast" in module:
                self.crossings += 1
                self._at_last_crossing = len(self.entered)


def traced(
    name: str, work: Callable[[], object], target: tuple[int, int] | None = None, *, to_rust: bool = False
) -> Walk:
    """The walk of some work, which is done once before: imports and connections are there."""
    work()
    trace = Trace()
    with trace.on():
        work()
    return trace.walk(name, target, to_rust=to_rust)


def walks() -> Iterator[Walk]:
    """All of them."""
    with EmbeddedCluster() as cluster, Producer("walks", name_server=cluster.name_server) as producer:
        producer.create_topic("walks", 1)
        message = Message("walks", b"body")
        yield traced("Producer.send to the socket", lambda: producer.send(message), (8, 4), to_rust=True)
        (queue,) = producer.fetch_publish_message_queues("walks")
        for number in range(COUNT):
            producer.send(Message("walks", b"%d" % number), queue)
        yield poll(cluster, queue)
        yield from spark_topic(cluster)
    yield scan()


def poll(cluster: EmbeddedCluster, queue: MessageQueue) -> Walk:
    """A poll for which a message is there."""
    with LitePullConsumer("walks", name_server=cluster.name_server) as consumer:
        consumer.assign([queue])
        consumer.seek_to_begin(queue)
        until(lambda: consumer.backlog >= COUNT // 2)
        return traced("LitePullConsumer.poll", lambda: consumer.poll(10.0), (10, 5))


def scan() -> Walk:
    """A scan up to its first batch."""
    with tempfile.TemporaryDirectory() as directory:
        with open_store(directory, mode="a") as store:
            for number in range(COUNT):
                store.append(Message("walks", b"%d" % number))
        with open_store(directory) as store:
            return traced("store.scan to a batch", lambda: next(iter(store.scan().batches())), (12, 3))


def spark_topic(cluster: EmbeddedCluster) -> Iterator[Walk]:
    """The driver's and a task's part of a read of a topic, by the classes that PySpark calls."""
    from rmqfast.spark.source import RocketMQDataSource

    options = {"nameServer": cluster.name_server, "topic": "walks"}

    def plan() -> Any:
        source = RocketMQDataSource(options)
        schema: Any = source.schema()
        reader = source.reader(schema)
        return reader, reader.partitions()

    yield traced("topic: the driver plans", plan, (60, 12))
    reader, partitions = plan()
    yield traced("topic: a task reads", lambda: list(reader.read(partitions[0])), (30, 6))


def table(found: Sequence[Walk]) -> Iterator[str]:
    """The lines of a person's table."""
    yield f"{'walk':<26} {'calls':>6} {'files':>6} {'changes':>8} {'into Rust':>10}   target: calls, files"
    for walk in found:
        target = "" if walk.target is None else f"{walk.target[0]}, {walk.target[1]}"
        yield f"{walk.name:<26} {walk.calls:>6} {walk.files:>6} {walk.changes:>8} {walk.crossings:>10}   {target}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    options = parser.parse_args()
    found = list(walks())
    as_json = json.dumps([asdict(walk) for walk in found], indent=2)
    sys.stdout.write(f"{as_json if options.output == 'json' else chr(10).join(table(found))}\n")


if __name__ == "__main__":
    main()
