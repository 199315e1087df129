"""A random history of one or two groups of a topic: members that come, go, crash and change what they want."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from rmqfast import EmbeddedCluster, Message, MessageQueue, Producer
from rmqfast.admin import Admin
from rmqfast.admin.history import HistoryWatcher
from rmqfast.client.instance import ClientConfig
from rmqfast.errors import RmqError
from tests.waiting import until

from .member import BROADCAST, LITE, ORDERLY, PULL, PUSH, Body, Spec, run

#: Weights of the kinds of members.
WEIGHTS = {PUSH: 55, ORDERLY: 10, LITE: 15, PULL: 10, BROADCAST: 10}
EQUAL, CONFLICTING, SQL, MIXED, CHANGED = STYLES = ("equal", "conflicting", "sql", "mixed", "changed")
_TAGS = ("TagA", "TagB", "TagC", None)
_EXPRESSIONS = {
    EQUAL: ("*", "TagA", "TagA || TagB"),
    CONFLICTING: ("TagA", "TagB", "TagA || TagC"),
    SQL: ("sql:n > 4", "sql:n <= 4", "sql:TAGS = 'TagA'"),
    MIXED: ("*", "TagB", "sql:n > 4"),
    CHANGED: ("TagA", "TagB", "*"),
}
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([f"{__package__}.member"])
#: Seconds that a member has to start or to leave; a machine with other work needs seconds for a process.
_PATIENCE = 60.0
#: Seconds without a change after which a history counts as settled; failed messages come back after one second.
_QUIET = 2.5
#: Seconds that a reset takes where samples are taken: clients take ten, of which each look sees a part.
_SAMPLED_RESET = 1.5


@dataclass
class Cluster:
    """What histories share."""

    cluster: EmbeddedCluster
    admin: Admin
    producer: Producer
    directory: Path
    sample_interval: float | None = None
    #: Seconds behind each change of members: without them, members come and go as fast as processes start.
    pause: float = 0.0


@dataclass
class RunningMember:
    """A member's process, and the connection that gives it orders."""

    spec: Spec
    process: Any
    orders: Connection

    def order(self, *order: str) -> None:
        self.orders.send(order)

    def wait(self) -> None:
        """Waits for the answer to an order."""
        if not self.orders.poll(_PATIENCE):
            raise AssertionError(f"{self.spec.instance} does not answer")
        try:
            self.orders.recv()
        except EOFError:
            raise AssertionError(f"{self.spec.instance} ended by itself") from None


@dataclass
class Group:
    """A group of a history, and its members that are online."""

    name: str
    kind: str
    style: str
    is_traced: bool
    members: list[RunningMember] = field(default_factory=list)
    joined: int = 0


@dataclass
class Sent:
    """A message of the history, and where it is stored."""

    number: int
    offset_msg_id: str


class History:
    """Runs the steps of a seed; the same seed has the same steps, though not the same timing."""

    def __init__(self, seed: int, shared: Cluster) -> None:
        self.seed, self.shared = seed, shared
        self.chance = random.Random(seed)
        self.topic = f"topic_{seed}"
        self.notes = shared.directory / f"notes-{seed}"
        self.sent: list[Sent] = []
        self.steps: list[str] = []
        self.samples: Path | None = None
        self._look: Callable[[], None] = lambda: None
        self.groups = [self._new_group(number) for number in range(self.chance.choice((1, 1, 2)))]

    def _new_group(self, number: int) -> Group:
        kind = self.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        style = self.chance.choice(STYLES)
        return Group(f"g{self.seed}_{number}", kind, style, is_traced=self.chance.random() < 0.4)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Samples the groups while the block runs, if that is wanted."""
        interval = self.shared.sample_interval
        if interval is None:
            yield
            return
        self.samples = self.shared.directory / f"samples-{self.seed}"
        config = ClientConfig(name_server=self.shared.cluster.name_server)
        # Each history has a budget of requests of its own, as a cluster has.
        names = [group.name for group in self.groups]
        with HistoryWatcher(config, self.samples, interval=interval, groups=names) as watcher:
            self._look = partial(_look, watcher)
            yield

    def run(self) -> None:
        """Takes all steps. Members are online afterwards, where the steps leave them."""
        self.shared.admin.create_topic(self.topic, queues=self.chance.randint(1, 4))
        for group in self.groups:
            for _ in range(self.chance.randint(1, 2)):
                self._join(group)
                self._pause()
        self._send()
        steps: list[tuple[int, Callable[[Group], None]]] = [
            (30, lambda _: self._send()),
            (14, self._join),
            (12, self._leave),
            (8, self._crash),
            (8, self._resubscribe),
            (5, self._reset_to_begin),
            (5, self._reset_to_end),
            (5, self._resend),
            (5, self._stop_all),
            (14, lambda _: self._wait()),
        ]
        weights = [weight for weight, _ in steps]
        for _ in range(self.chance.randint(3, 9)):
            group = self.chance.choice(self.groups)
            self.chance.choices([step for _, step in steps], weights)[0](group)
            self._pause()
        if self.chance.random() < 0.75:
            self._settle()
        self._look()

    def stop(self) -> None:
        """Ends all members that are online."""
        for group in self.groups:
            self._stop_all(group)

    def _send(self) -> None:
        count = self.chance.randint(2, 6)
        self.steps.append(f"send {count}")
        for _ in range(count):
            number = len(self.sent)
            failures = self.chance.choices((0, 1, 2, 99), (80, 8, 6, 6))[0]
            seconds = 2.5 if self.chance.random() < 0.04 else 0.0
            body = Body(number, failures, seconds).encode()
            message = Message(self.topic, body, self.chance.choice(_TAGS), properties={"n": str(number % 9)})
            self.sent.append(Sent(number, self.shared.producer.send(message).offset_msg_id))

    def _join(self, group: Group) -> None:
        if len(group.members) >= 3:
            return
        expressions = _EXPRESSIONS[group.style]
        expression = expressions[0] if group.style == EQUAL else self.chance.choice(expressions)
        spec = Spec(
            name_server=self.shared.cluster.name_server,
            group=group.name,
            kind=group.kind,
            topic=self.topic,
            expression=expression,
            instance=f"{group.name}_{group.joined}",
            notes=self.notes,
            is_traced=group.is_traced,
            clock_shift=self.chance.choices((0.0, -3600.0, 3600.0), (94, 3, 3))[0],
            reset_pause=0.5 if self.shared.sample_interval is None else _SAMPLED_RESET,
        )
        self.steps.append(f"join {spec.instance} {group.kind} {expression} {spec.clock_shift:g}")
        group.joined += 1
        mine, its = _CONTEXT.Pipe()
        process = _CONTEXT.Process(target=run, args=(spec, its), daemon=True)
        process.start()
        its.close()
        member = RunningMember(spec, process, mine)
        group.members.append(member)
        member.wait()

    def _leave(self, group: Group) -> None:
        if group.members:
            member = group.members.pop(self.chance.randrange(len(group.members)))
            self.steps.append(f"leave {member.spec.instance}")
            self._end(member)

    def _end(self, member: RunningMember) -> None:
        member.order("leave")
        # No exit code: where several threads have processes, each start polls all of them, and one poll wins.
        member.wait()
        member.process.join(_PATIENCE)
        member.orders.close()

    def _crash(self, group: Group) -> None:
        if group.members:
            member = group.members.pop(self.chance.randrange(len(group.members)))
            self.steps.append(f"crash {member.spec.instance}")
            member.process.kill()
            member.process.join(_PATIENCE)
            member.orders.close()

    def _resubscribe(self, group: Group) -> None:
        if group.members and group.style != EQUAL:
            member = self.chance.choice(group.members)
            expression = self.chance.choice(_EXPRESSIONS[group.style])
            self.steps.append(f"resubscribe {member.spec.instance} {expression}")
            member.order("subscribe", expression)
            member.wait()

    def _reset_to_begin(self, group: Group) -> None:
        self._reset(group, "begin", self.shared.admin.offsets.reset_to_begin)

    def _reset_to_end(self, group: Group) -> None:
        self._reset(group, "end", self.shared.admin.offsets.reset_to_end)

    def _reset(self, group: Group, where: str, reset: Callable[[str, str], dict[MessageQueue, int]]) -> None:
        retry = f"%RETRY%{group.name}"
        topic = retry if self.chance.random() < 0.15 else self.topic
        self.steps.append(f"reset {group.name} {topic} to {where}")
        try:
            reset(group.name, topic)
        except RmqError as error:  # a group without offsets, or without a topic of retries
            self.steps.append(f"refused: {error}")

    def _resend(self, group: Group) -> None:
        try:
            letters = self.shared.admin.dead_letters.of_group(group.name)
        except RmqError:
            return  # a group without a topic of dead letters
        for letter in letters[:2]:
            self.steps.append(f"resend {letter.body.decode()} to {group.name}")
            self.shared.admin.dead_letters.resend(letter)

    def _stop_all(self, group: Group) -> None:
        self.steps.append(f"stop all of {group.name}")
        while group.members:
            self._end(group.members.pop())

    def _wait(self) -> None:
        seconds = self.chance.choice((0.3, 1.0, 2.0))
        self.steps.append(f"wait {seconds:g}")
        time.sleep(seconds)  # noqa: TID251 - a part of the history

    def _pause(self) -> None:
        time.sleep(self.shared.pause)  # noqa: TID251 - a part of the history

    def _settle(self) -> None:
        self.steps.append("settle")
        quiet_since, seen = time.monotonic(), self._state()
        deadline = quiet_since + 15
        while time.monotonic() < min(deadline, quiet_since + _QUIET):
            time.sleep(0.2)  # noqa: TID251 - looks whether anything happens
            if (state := self._state()) != seen:
                quiet_since, seen = time.monotonic(), state

    def _state(self) -> object:
        return self.notes.stat().st_size if self.notes.exists() else 0


def _look(watcher: HistoryWatcher) -> None:
    """Waits for a look that began after the call: whoever explains comes later than the last step."""
    looks = watcher.looks
    until(lambda: watcher.looks >= looks + 2)
