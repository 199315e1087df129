"""What a play has: a cluster, topics of its own, consumers of both kinds, and the patience to wait for what happens."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rmqfast import Message, MessageQueue
from rmqfast._native import MessageView
from rmqfast.admin import Admin
from rmqfast.client.producer import Producer, SendResult
from rmqfast.client.push import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus, PushConsumer
from rmqfast.errors import RmqError
from tests.broker.interop.cluster import SCENARIO, Cluster, cluster_of
from tests.interop.rocketmq import running

#: The release of the clients of Java: those of 4.9.4 speak to all three clusters.
CLIENTS = "4.9.4"
PATIENCE = 240.0
FIRST = "CONSUME_FROM_FIRST_OFFSET"


@dataclass(frozen=True)
class Scene:
    """A cluster while plays run on it.

    Attributes:
        kind: `ours`, or the version of RocketMQ.
        cluster: The cluster.
        admin: Looks into it.
        producer: Sends to it.
        directory: Where files go.
    """

    kind: str
    cluster: Cluster
    admin: Admin
    producer: Producer
    directory: Path

    @property
    def name_server(self) -> str:
        """`host:port`."""
        return self.cluster.name_server

    def topic(self, name: str, queues: int = 4) -> list[MessageQueue]:
        """Makes a topic; its queues, as soon as the producer sees them."""
        self.admin.create_topic(name, queues)
        found: list[MessageQueue] = []

        def is_seen() -> bool:
            found[:] = sorted(self.producer.fetch_publish_message_queues(name))
            return len(found) == queues

        until(is_seen, f"{name} has {queues} queues")
        return found

    def send(self, queues: Sequence[MessageQueue], bodies: Sequence[bytes], **more: Any) -> list[SendResult]:
        """Sends from queue to queue."""
        return [
            self.producer.send(Message(queues[0].topic, body, **more), queues[number % len(queues)])
            for number, body in enumerate(bodies)
        ]

    def push(self, group: str, topic: str, listener: Any, expression: Any = "*", **more: Any) -> PushConsumer:
        """A consumer that is not started, and begins at the first message."""
        orderly = more.pop("orderly", None)
        made = PushConsumer(group, name_server=self.name_server, **{"consume_from_where": FIRST, **more})
        made.subscribe(topic, expression)
        made.register_message_listener(listener, orderly=orderly)
        return made

    def offsets(self, group: str, topic: str) -> list[int]:
        """Where a group is, queue by queue."""
        rows = [row for row in self.admin.groups.progress(group) if row.topic == topic]
        return [row.consumer_offset for row in sorted(rows, key=lambda row: row.queue_id)]

    def owned(self, group: str, topic: str) -> dict[str, list[int]]:
        """The queues that each member says it has."""
        return {
            member: sorted(q.queue_id for q in self.admin.groups.running_info(group, member).queues if q.topic == topic)
            for member in self.admin.groups.connections(group).client_ids
        }

    def is_shared(self, group: str, queues: Sequence[MessageQueue], members: int) -> bool:
        """Whether so many members have all queues, no queue twice and none nobody."""
        owned = self.owned(group, queues[0].topic)
        held = sorted(number for numbers in owned.values() for number in numbers)
        return len(owned) == members and held == [queue.queue_id for queue in queues] and all(owned.values())

    @contextlib.contextmanager
    def java(self, group: str, topic: str, *words: object, mode: str = "push", extra: str = "") -> Iterator[JavaMember]:
        """A consumer of Java while the block runs, which it leaves as one should."""
        to = ("--mode", mode, "--namesrv", self.name_server, "--group", group, "--topic", topic)
        stay = ("--idle-ms", 900_000, "--timeout-ms", 900_000)
        with running(
            CLIENTS, "Consume", *to, *stay, *words, log=self.directory / f"{group}.java", extra=extra
        ) as child:
            member = JavaMember(child)
            yield member
            child.terminate()
            member.ended()


class JavaMember:
    """A consumer of Java; the rows that it printed, one for each message."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self.rows: list[dict[str, Any]] = []
        self._child = child
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait(self, count: int) -> None:
        """Waits until so many messages came."""
        until(lambda: len(self.rows) >= count, f"{count} messages for Java")

    @property
    def places(self) -> list[tuple[int, int]]:
        """Queue and offset of each message, as they came."""
        return [(row["queueId"], row["queueOffset"]) for row in self.rows]

    def ended(self) -> None:
        """Waits until all that it printed is here."""
        self._child.wait(PATIENCE)
        self._reader.join(PATIENCE)

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            if line.startswith("{"):
                self.rows.append(json.loads(line))


class Seen:
    """A listener that notes what comes, and answers what a function says, or that all is well."""

    def __init__(self, answer: Callable[[MessageView], Any] | None = None, *, orderly: bool = False) -> None:
        self.messages: list[MessageView] = []
        self.times: list[float] = []
        done = ConsumeOrderlyStatus.SUCCESS if orderly else ConsumeConcurrentlyStatus.CONSUME_SUCCESS
        self._answer = answer or (lambda _: done)

    def __call__(self, messages: Sequence[MessageView], _context: Any) -> Any:
        self.times.append(time.monotonic())
        self.messages.extend(messages)
        return self._answer(messages[0])

    def wait(self, count: int) -> None:
        """Waits until so many messages came."""
        until(lambda: len(self.messages) >= count, f"{count} messages")

    @property
    def bodies(self) -> list[bytes]:
        """In the order in which they came."""
        return [message.body or b"" for message in self.messages.copy()]

    @property
    def places(self) -> list[tuple[int, int]]:
        """Queue and offset of each message, as they came."""
        return [(message.queue_id, message.queue_offset) for message in self.messages.copy()]


def until(condition: Callable[[], object], what: str = "", seconds: float = PATIENCE, every: float = 0.1) -> None:
    """Waits until something is so; what a cluster refuses to answer is not so yet."""
    end, refused = time.monotonic() + seconds, None
    while True:
        try:
            if condition():
                return
        except RmqError as error:
            refused = error
        assert time.monotonic() < end, f"not within {seconds} s: {what}, last refused: {refused}"
        time.sleep(every)  # noqa: TID251 - polls; five plays that ask a broker without a pause are load


@contextlib.contextmanager
def scene(kind: str, directory: Path, properties: Sequence[str] = ()) -> Iterator[Scene]:
    """A cluster of a kind, fresh, while the block runs."""
    with (
        # a broker refuses a send that waited for 200 ms: five plays at a time may keep it busy for longer
        cluster_of(kind, directory / "cluster", (*SCENARIO, "waitTimeMillsInSendQueue=20000", *properties)) as cluster,
        Admin(name_server=cluster.name_server, instance_name=f"admin-{id(cluster)}", timeout=20) as admin,
        Producer("plays", name_server=cluster.name_server, instance_name=f"producer-{id(cluster)}") as producer,
    ):
        yield Scene(kind, cluster, admin, producer, directory)


Play = Callable[[Scene], None]
Plays = Mapping[str, Play]
