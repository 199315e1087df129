"""Brokers with the messages of one dataset, and processes that read them; all its cells share them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from broker import wire
from broker.sides import Rmqfast, RocketMQ, Side
from client.group import rmqfast_process
from data import TOPIC, Dataset, warm
from groups import Plan
from kafka import Kafka, connector_jars
from live.peers import KEEPS, LACKING, RAISED, entered, follower, reader, spark
from peer import Peer
from spark_groups import spark_classes, spark_version

T = TypeVar("T")


@dataclass(frozen=True)
class Topic:
    """A dataset's messages at a running broker: where, under which name, in which files."""

    address: str
    name: str
    files: Path


class Stage:
    """Each of them is started when it is asked for, once; all end with the stack."""

    def __init__(self, dataset: Dataset, plan: Plan, stack: ExitStack) -> None:
        self.dataset, self.plan = dataset, plan
        self._stack = stack
        self._there: dict[str, Any] = {}

    def topic(self, place: str) -> Topic:
        """The messages at Kafka's broker, at RocketMQ's, or at ours; all read them from warm files."""
        if place == "Kafka":
            return self._once(place, self._kafka)
        side = self.broker(place)
        return Topic(side.name_server, TOPIC, side.directory / "store")

    def broker(self, place: str) -> Side:
        """RocketMQ's cluster as it is shipped, or ours with 1,024 messages a pull."""
        kind, limits = (RocketMQ, KEEPS) if place == "RocketMQ" else (Rmqfast, RAISED)
        return self._once(f"{place}'s broker", lambda: self._entered(kind, limits))

    def spark(self, version: str) -> Peer:
        """A session of two local threads: of Spark `newest`, or `4.0`."""
        python = self.plan.kafka_python if version == "4.0" else self.plan.spark_python
        return self._once(f"Spark {version}", lambda: self._session(python))

    @property
    def reader(self) -> Peer:
        """A process with the bare puller."""
        return self._once("reader", lambda: self._stack.enter_context(reader()))

    @property
    def follower(self) -> Peer:
        """A process that copies a log."""
        return self._once("follower", lambda: self._stack.enter_context(follower()))

    @property
    def sender(self) -> Peer:
        """A process with our clients."""
        return self._once("sender", lambda: self._stack.enter_context(rmqfast_process()))

    def small_topic(self, queues: int, count: int) -> str:
        """A topic of our broker with so many messages; which, when they are the same, one asks for once."""
        topic = f"small_{queues}_{count}"

        def fill() -> str:
            broker = self.broker("rmqfast")
            wire.create_topic(broker.address, topic, queues)
            self.sender.ask("connect", broker.name_server)
            self.sender.ask("columns", topic, self.dataset.body, count, 32)
            return topic

        return self._once(topic, fill)

    def _once(self, name: str, start: Callable[[], T]) -> T:
        if name not in self._there:
            try:
                self._there[name] = start()
            except LACKING as error:
                self._there[name] = error
        there: T | Exception = self._there[name]
        if isinstance(there, Exception):
            raise there
        return there

    def _entered(self, kind: type[Side], limits: tuple[str, ...]) -> Side:
        side = entered(self._stack, kind, self.dataset, limits)
        # not its configuration, which it writes now and then
        warm(*(side.directory / "store" / part for part in ("commitlog", "consumequeue")))
        return side

    def _kafka(self) -> Topic:
        broker = self._stack.enter_context(Kafka())
        topic = Topic(broker.bootstrap, broker.fill(self.dataset), broker.data)
        warm(topic.files)
        return topic

    def _session(self, python: str) -> Peer:
        jars = [spark_classes(python)]
        with contextlib.suppress(*LACKING):  # what Kafka's topic is missing for, too
            jars.append(connector_jars(spark_version(python)))
        return self._stack.enter_context(spark(python, "local[2]", ":".join(jars)))
