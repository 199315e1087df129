"""RocketMQ's Go client: the actions of its programs as rows."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.broker.interop.cluster import ROOT, Cluster
from tests.interop.rocketmq import NICE, java

from .outsider import Outsider, install_once

SOURCE = ROOT / "tests/interop/go"
PROGRAM = ROOT / "tests/interop/target/go/rmqgo"
COUNT = 10
# of each kind COUNT, and a late one
ALL = 4 * COUNT + 1


def install() -> None:
    """The program, built anew where its sources are newer; its modules come from the module proxy."""
    install_once(PROGRAM.parent, list(SOURCE.iterdir()), ("go", "build", "-o", PROGRAM, "."), cwd=SOURCE)


def rows(cluster: Cluster) -> dict[str, list[Any]]:
    """The rows of a producer, a push consumer and an orderly consumer, each sorted."""
    install()
    made = ("-n", cluster.name_server, "-c", "DefaultCluster", "-t", "go", "-r", 4, "-w", 4)
    java("4.9.4", "Admin", "updateTopic", *made)
    steps = {
        "produce": ("produce", cluster.name_server, "go", COUNT),
        "push": ("push", cluster.name_server, "go", "go_push", ALL),
        "orderly": ("orderly", cluster.name_server, "go", "go_orderly", ALL),
    }
    return {name: told(words) for name, words in steps.items()}


def told(words: tuple[object, ...]) -> list[Any]:
    """The rows of one run."""
    command = [*NICE, str(PROGRAM), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"{words[0]} of the Go client: {done.stderr[-1000:]}")
    lines = (line for line in done.stdout.splitlines() if line.startswith("{"))
    return sorted(map(json.loads, lines), key=lambda row: json.dumps(row, sort_keys=True))


GO = Outsider(
    "go",
    "rocketmq-client-go 2.1.2",
    "Go client: sync, asynchronous, one-way, delayed and batch sends; push and orderly consumers with retries",
    install,
    rows,
)
