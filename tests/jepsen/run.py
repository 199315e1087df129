"""One run: senders and members while a nemesis breaks things, then a history that is checked."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from rmqfast import open_store
from rmqfast.admin import Admin
from rmqfast.client.instance import ClientConfig
from rmqfast.errors import RmqError
from tests.broker.interop.cluster import OurCluster
from tests.client.interop.processes import MemberProcess
from tests.proxy import Proxy
from tests.waiting import until

from .history import END, GROUPS, TOPIC, Commit, Delivery, History, Violation, check, read_deliveries
from .senders import Senders

QUEUES, SENDERS = 8, 4
_MEMBERS = range(2, 5)
_SAMPLE = 0.25
#: Until all is consumed: a queue in order whose member was killed stays locked for a minute.
_AFTERWARDS = 240.0
_CONFIG = (
    "messageDelayLevel=1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s",
    "mappedFileSizeCommitLog=1048576",
    "mappedFileSizeConsumeQueue=20000",
    "maxHashSlotNum=1000",
    "maxIndexNum=4000",
    "waitTimeMillsInSendQueue=5000",
)


@dataclass
class Run:
    """The result of a run.

    Attributes:
        faults: How often each fault was made.
        redelivered: Messages that a group got more than once, of all groups.
    """

    seed: int
    flush: str
    history: History
    violations: list[Violation]
    faults: Counter[str] = field(default_factory=Counter)
    redelivered: int = 0
    seconds: float = 0.0


class Nemesis:
    """Breaks one thing after the other, by chance, and mends it."""

    def __init__(self, cluster: OurCluster, gates: dict[str, Proxy], directory: Path, seed: int) -> None:
        self._cluster, self._gates, self._directory, self._seed = cluster, gates, directory, seed
        self._chance = random.Random(seed)
        self.members: list[MemberProcess] = []
        #: Files of all members that ever were.
        self.files: list[Path] = []
        self.faults: Counter[str] = Counter()
        self.broker_starts: list[int] = []
        self._actions = {
            "member killed": self._kill_member,
            "member left": self._let_member_leave,
            "member joined": self.join,
            "member stood still": self._stop_member,
            "broker killed": self._kill_broker,
            "broker restarted": self._restart_broker,
            "connections cut": self._cut,
            "answers held back": self._hold_back,
            "cut from the broker": self._part,
        }

    def join(self) -> None:
        """Starts a member."""
        if len(self.members) >= _MEMBERS.stop - 1:
            return
        file = self._directory / f"member-{len(self.files)}"
        self.files.append(file)
        addresses = [self._gates[name].address for name in ("name server", "broker")]
        self.members.append(MemberProcess("tests.jepsen.member", file, *addresses, file, file.name, self._seed))
        self.members[-1].wait_ready()

    def act(self) -> None:
        """Breaks something, and mends it after a moment."""
        what = self._chance.choice(list(self._actions))
        self.faults[what] += 1
        self._actions[what]()
        while len(self.members) < _MEMBERS.start:
            self.join()
        time.sleep(self._chance.uniform(0.2, 2))  # noqa: TID251 - faults come at random moments

    def end(self) -> None:
        """Lets all members leave as they should."""
        threads = [threading.Thread(target=member.leave) for member in self.members]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.members.clear()

    def kill_all(self) -> None:
        """Leaves no process behind."""
        for member in self.members:
            member.kill()

    def _one(self) -> MemberProcess:
        return self._chance.choice(self.members)

    def _kill_member(self) -> None:
        member = self._one()
        self.members.remove(member)
        member.kill()

    def _let_member_leave(self) -> None:
        member = self._one()
        self.members.remove(member)
        member.leave()

    def _stop_member(self) -> None:
        member = self._one()
        member.signal(signal.SIGSTOP)
        self._wait(1, 6)
        member.signal(signal.SIGCONT)

    def _kill_broker(self) -> None:
        self._cluster.kill9()
        self._wait(0, 1)
        self._start_broker()

    def _restart_broker(self) -> None:
        self._cluster.stop()
        self._start_broker()

    def _start_broker(self) -> None:
        # its first answer may come before it says that it is ready
        self.broker_starts.append(time.monotonic_ns())
        self._cluster.start()

    def _cut(self) -> None:
        gate = self._gates["broker"]
        for _ in range(self._chance.randrange(1, 4)):
            gate.down()
            gate.up()
            self._wait(0, 1)

    def _hold_back(self) -> None:
        gate = self._gates[self._chance.choice(["broker", "name server"])]
        gate.shut()
        self._wait(0.5, 8)
        gate.open()

    def _part(self) -> None:
        gate = self._gates[self._chance.choice(["broker", "name server"])]
        gate.down()
        self._wait(0.5, 5)
        gate.up()

    def _wait(self, least: float, most: float) -> None:
        time.sleep(self._chance.uniform(least, most))  # noqa: TID251 - faults last for a random time


def run_seed(seed: int, flush: str, events: int, directory: Path) -> Run:
    """Runs one seed, in an empty directory.

    Args:
        flush: `ASYNC_FLUSH` or `SYNC_FLUSH`.
        events: How many things are broken.
    """
    began = time.monotonic()
    history = History()
    cluster = OurCluster(directory / "cluster", (*_CONFIG, f"flushDiskType={flush}"))
    with ExitStack() as stack:
        stack.enter_context(cluster)
        gates = {"broker": Proxy(cluster.broker), "name server": Proxy(cluster.name_server)}
        for gate in gates.values():
            stack.callback(gate.close)
        admin = stack.enter_context(Admin(name_server=cluster.name_server, instance_name=f"admin-{seed}", timeout=20))
        admin.create_topic(TOPIC, QUEUES)
        nemesis = Nemesis(cluster, gates, directory, seed)
        stack.callback(nemesis.kill_all)
        nemesis.join()
        nemesis.join()
        config = ClientConfig(
            name_server=gates["name server"].address,
            instance_name=f"senders-{os.getpid()}-{seed}",
            translate_address=lambda _: gates["broker"].address,
        )
        with Senders(config, QUEUES, SENDERS) as senders, _sampled(admin, history.commits):
            for _ in range(events):
                nemesis.act()
            senders.end()
            history.acknowledged, history.unknown = senders.acknowledged, senders.unknown
            _await_consumed(nemesis.files, set(senders.acknowledged))
        nemesis.end()
        history.final_commits = _commits_of(admin)
    with open_store(cluster.store) as store:
        rows = store.scan(TOPIC, columns=["queue_id", "queue_offset", "body"]).to_arrow().to_pylist()
    history.stored = {(row["queue_id"], row["queue_offset"]): row["body"].decode() for row in rows}
    history.deliveries = read_deliveries(nemesis.files)
    history.broker_starts = nemesis.broker_starts
    done = Counter((each.group, each.body) for each in history.deliveries if each.what == END)
    return Run(
        seed,
        flush,
        history,
        check(history),
        nemesis.faults,
        redelivered=sum(count - 1 for count in done.values()),
        seconds=time.monotonic() - began,
    )


def _await_consumed(files: list[Path], bodies: set[str]) -> None:
    """Waits until each group is done with all of these messages, as long as anything goes on."""

    def done() -> list[Delivery]:
        return [each for each in read_deliveries(files) if each.what == END]

    def is_consumed() -> bool:
        time.sleep(0.5)  # noqa: TID251 - the files of all members are read each time
        of_groups: dict[str, set[str]] = {group: set() for group in GROUPS}
        for each in done():
            of_groups[each.group].add(each.body)
        return all(of_group >= bodies for of_group in of_groups.values())

    # what is missing then is a violation, which the history tells
    with suppress(AssertionError):
        until(is_consumed, patience=_AFTERWARDS)


def _commits_of(admin: Admin) -> list[Commit]:
    """The offsets of all groups; of those that the broker tells nothing of, none."""
    commits = []
    for group in GROUPS:
        with suppress(RmqError):
            rows = [row for row in admin.groups.progress(group, TOPIC) if row.topic == TOPIC]
            commits += [Commit(group, row.queue_id, row.consumer_offset, time.monotonic_ns()) for row in rows]
    return commits


@contextmanager
def _sampled(admin: Admin, commits: list[Commit]) -> Iterator[None]:
    """Asks for the groups' offsets again and again while the block runs."""
    ended = threading.Event()

    def sample() -> None:
        while not ended.wait(_SAMPLE):
            commits.extend(_commits_of(admin))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
