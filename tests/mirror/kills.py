"""A mirror and its master killed again and again under load: after each kill the copy has the master's log.

python -m tests.mirror.kills ROUNDS [SEED [VERSION]]
"""

from __future__ import annotations

import contextlib
import itertools
import random
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rmqfast import Message, Producer, open_store
from rmqfast.errors import RmqError
from tests.interop.rocketmq import RocketMQ
from tests.mirror.copies import SMALL, assert_same
from tests.waiting import until

TOPIC = "orders"
VICTIMS = ("mirror", "master", "both")


@dataclass
class Outcome:
    """What became of messages and kills."""

    kills: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VICTIMS, 0))
    acknowledged: list[bytes] = field(default_factory=list)
    missing: list[bytes] = field(default_factory=list)
    is_sound: bool = False

    def __str__(self) -> str:
        return (
            f"{self.kills}: {len(self.acknowledged)} acknowledged, {len(self.missing)} missing, sound: {self.is_sound}"
        )


class CopyProcess:
    """`rmqfast mirror`, as a process that can be killed."""

    def __init__(self, name_server: str, copies: Path, *options: str) -> None:
        command = [sys.executable, "-m", "rmqfast", "mirror", "-n", name_server, str(copies), "-o", "jsonl"]
        self._command = [*command, *options]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)

    def end(self, how: signal.Signals) -> int:
        assert self._process is not None
        self._process.send_signal(how)
        return self._process.wait(60)


@contextlib.contextmanager
def load(name_server: str, acknowledged: list[bytes], topics: Sequence[str] = (TOPIC,)) -> Iterator[None]:
    """Sends without end, to one topic after the other, whatever becomes of the broker; notes what was acknowledged."""
    stopping = threading.Event()

    def send(producer: Producer) -> None:
        for number in itertools.count():
            if stopping.wait(0.0005):
                return
            body = f"{number} ".encode().ljust(100 + number * 37 % 700, b"x")
            with contextlib.suppress(RmqError):
                producer.send(Message(topics[number % len(topics)], body, tags=f"t{number % 3}", keys=f"k{number}"))
                acknowledged.append(body)

    with Producer("load", name_server=name_server) as producer:
        thread = threading.Thread(target=send, args=(producer,))
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join()


def end_of(store: Path) -> int:
    with open_store(store) as opened:
        return opened.info().max_offset


def killed(rounds: int, directory: Path, seed: int = 1, version: str = "4.9.4") -> Outcome:
    """Kills so often."""
    chance, outcome = random.Random(seed), Outcome()
    copies = directory / "copies"
    with RocketMQ(version, directory / "mq", *SMALL, clean=False) as master:
        master.create_topic(TOPIC, 4)
        mirror = CopyProcess(master.name_server, copies)
        mirror.start()
        until((copies / "broker-a" / "mirror.json").exists)
        with load(master.name_server, outcome.acknowledged):
            for number in range(rounds):
                count = len(outcome.acknowledged) + chance.randint(50, 800)
                until(lambda count=count: len(outcome.acknowledged) >= count)  # type: ignore[misc]
                victim = chance.choice(VICTIMS)
                kill(victim, master, mirror)
                outcome.kills[victim] += 1
                goal = end_of(master.store)
                until(lambda goal=goal: end_of(copies / "broker-a") >= goal)  # type: ignore[misc]
                assert_same(master.store, copies / "broker-a", queues=False)
                sys.stderr.write(f"{number + 1} kills, {outcome}\n")
        goal = end_of(master.store)
        until(lambda: end_of(copies / "broker-a") >= goal)
        assert mirror.end(signal.SIGTERM) == 0
        assert_same(master.store, copies / "broker-a")
    with open_store(copies / "broker-a") as store:
        outcome.is_sound = store.verify().ok
        stored = set(store.scan(TOPIC).to_arrow()["body"].to_pylist())
    outcome.missing = [body for body in outcome.acknowledged if body not in stored]
    return outcome


def kill(victim: str, master: RocketMQ, mirror: CopyProcess) -> None:
    if victim in ("mirror", "both"):
        mirror.end(signal.SIGKILL)
    if victim in ("master", "both"):
        master.kill9()
        master.start()
    if victim in ("mirror", "both"):
        mirror.start()


def main() -> None:
    given = sys.argv[1:]
    rounds, seed, version = (*given, *("9", "1", "4.9.4")[len(given) :])
    with tempfile.TemporaryDirectory() as directory:
        outcome = killed(int(rounds), Path(directory), int(seed), version)
    sys.stdout.write(f"{outcome}\n")
    sys.exit(0 if outcome.is_sound and not outcome.missing else 1)


if __name__ == "__main__":
    main()
