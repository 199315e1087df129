"""A broker killed repeatedly under a Java producer and consumer: what was acknowledged is there and was consumed."""

from __future__ import annotations

import base64
import json
import random
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from subprocess import Popen
from typing import Any

from tests.interop.rocketmq import java, running
from tests.waiting import PATIENCE, until

from .cluster import Cluster

VERSION, TOPIC = "4.9.4", "steady"
#: Java's clients ask for routes every 30 seconds, and take up what they dropped every 20.
CLIENTS_PATIENCE = 3 * PATIENCE
Place = tuple[int, int]  # queue, offset


@dataclass
class Outcome:
    acknowledged: dict[str, Place] = field(default_factory=dict)
    failed: int = 0
    consumed: set[str] = field(default_factory=set)
    stored: dict[str, list[Place]] = field(default_factory=dict)

    @property
    def lost(self) -> list[str]:
        """Acknowledged and no longer where it was acknowledged."""
        return [name for name, place in self.acknowledged.items() if place not in self.stored.get(name, [])]

    @property
    def not_consumed(self) -> list[str]:
        """Acknowledged and never given to the consumer."""
        return [name for name in self.acknowledged if name not in self.consumed]

    def __str__(self) -> str:
        return (
            f"{len(self.acknowledged)} acknowledged, {self.failed} refused, {len(self.lost)} lost, "
            f"{len(self.not_consumed)} not consumed"
        )


def name_of(line: dict[str, Any]) -> str:
    """The name that a body begins with."""
    return base64.b64decode(line["body"]).split(b" ")[0].decode()


class Lines:
    """The JSON lines of a client, read as they come."""

    def __init__(self, process: Popen[str]) -> None:
        self.lines: list[dict[str, Any]] = []
        self._thread = threading.Thread(target=self._read, args=(process,), daemon=True)
        self._thread.start()

    def _read(self, process: Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.lines.append(json.loads(line))

    def end(self) -> list[dict[str, Any]]:
        """All of them, once the client has ended."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        return self.lines


def killed(cluster: Cluster, rounds: int, seed: int = 1) -> Outcome:
    """Kills and restarts the broker so often; the cluster runs before and after."""
    random_source, outcome = random.Random(seed), Outcome()
    made = ("-n", cluster.name_server, "-c", "DefaultCluster", "-t", TOPIC, "-r", 4, "-w", 4)
    java(VERSION, "Admin", "updateTopic", *made)
    to = ("--namesrv", cluster.name_server, "--topic", TOPIC)
    log = cluster.directory / "clients.log"
    with ExitStack() as stack:
        stay = ("--group", "steady_group", "--idle-ms", 3_000_000, "--timeout-ms", 3_000_000)
        consuming = Lines(stack.enter_context(running(VERSION, "Consume", *to, *stay, log=log)))
        with running(VERSION, "Steady", *to, log=log) as producer:
            sending = Lines(producer)
            for number in range(rounds):
                wait_for(sending, random_source.randint(20, 400))
                cluster.kill9()
                cluster.start()
                sys.stderr.write(f"killed {number + 1} times, {len(sending.lines)} acknowledged\n")
            wait_for(sending, 200)
            assert producer.stdin is not None
            producer.stdin.close()
            producer.wait(PATIENCE)
            *acknowledged, told = sending.end()
        outcome.failed = told["failed"]
        outcome.acknowledged = {line["name"]: (line["queueId"], line["queueOffset"]) for line in acknowledged}
        taken = 0

        def is_consumed() -> bool:
            nonlocal taken
            more = consuming.lines[taken:]
            taken += len(more)
            outcome.consumed.update(map(name_of, more))
            return not outcome.not_consumed

        until(is_consumed, lambda: f"{outcome}", patience=CLIENTS_PATIENCE)
    for line in map(json.loads, java(VERSION, "Consume", *to, "--mode", "pull", "--group", "steady_all").splitlines()):
        outcome.stored.setdefault(name_of(line), []).append((line["queueId"], line["queueOffset"]))
    return outcome


def wait_for(lines: Lines, more: int) -> None:
    """Until so many more were acknowledged."""
    want = len(lines.lines) + more
    what = f"{want} acknowledged"
    until(lambda: len(lines.lines) >= want, lambda: f"{what}, got {len(lines.lines)}", patience=CLIENTS_PATIENCE)
