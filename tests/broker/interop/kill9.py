"""A broker killed again and again under a Java producer and consumer: what was acknowledged is there, and was consumed.

python -m tests.broker.interop.kill9 CLUSTER ROUNDS [SEED]     (ours or 4.9.4)
"""

from __future__ import annotations

import base64
import json
import random
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import Any

from tests.interop.rocketmq import java, running

from .cluster import Cluster, cluster_of

VERSION, TOPIC = "4.9.4", "steady"
Place = tuple[int, int]  # queue, offset


@dataclass
class Outcome:
    """What the clients saw, by the name of a message."""

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
        self._thread.join(30)
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
                wait_for(sending, random_source.randint(20, 400), 60)
                cluster.kill9()
                cluster.start()
                sys.stderr.write(f"killed {number + 1} times, {len(sending.lines)} acknowledged\n")
            wait_for(sending, 200, 60)
            assert producer.stdin is not None
            producer.stdin.close()
            producer.wait(30)
            *acknowledged, told = sending.end()
        outcome.failed = told["failed"]
        outcome.acknowledged = {line["name"]: (line["queueId"], line["queueOffset"]) for line in acknowledged}
        end = time.monotonic() + 90
        while time.monotonic() < end:
            outcome.consumed = set(map(name_of, consuming.lines[:]))
            if not outcome.not_consumed:
                break
            time.sleep(1)
    for line in map(json.loads, java(VERSION, "Consume", *to, "--mode", "pull", "--group", "steady_all").splitlines()):
        outcome.stored.setdefault(name_of(line), []).append((line["queueId"], line["queueOffset"]))
    return outcome


def wait_for(lines: Lines, more: int, seconds: float) -> None:
    """Until so many more were acknowledged."""
    want, end = len(lines.lines) + more, time.monotonic() + seconds
    while len(lines.lines) < want:
        if time.monotonic() > end:
            raise TimeoutError(f"{len(lines.lines)} acknowledged, expected {want}")
        time.sleep(0.01)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory, cluster_of(sys.argv[1], Path(directory) / "mq") as cluster:
        outcome = killed(cluster, int(sys.argv[2]), *map(int, sys.argv[3:]))
        sys.stdout.write(f"{outcome}\n")
        sys.exit(1 if outcome.lost or outcome.not_consumed else 0)


if __name__ == "__main__":
    main()
