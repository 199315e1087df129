"""Runs RocketMQ's Go client on a cluster and returns its actions as rows.

python -m tests.broker.interop.go_client CLUSTER     (ours or 4.9.4)
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.interop.rocketmq import NICE, java

from .cluster import ROOT, SCENARIO, Cluster, cluster_of

SOURCE = ROOT / "tests/interop/go"
PROGRAM = ROOT / "tests/interop/target/go/rmqgo"
COUNT = 10
# of each kind COUNT, and a late one
ALL = 4 * COUNT + 1


def build() -> Path:
    """The program, made anew where its sources are newer; its modules come from the module proxy."""
    if not PROGRAM.exists() or any(file.stat().st_mtime > PROGRAM.stat().st_mtime for file in SOURCE.iterdir()):
        PROGRAM.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([*NICE, "go", "build", "-o", str(PROGRAM), "."], cwd=SOURCE, check=True, timeout=300)
    return PROGRAM


def rows(cluster: Cluster) -> dict[str, list[Any]]:
    """The rows of a producer, a push consumer and an orderly consumer, each sorted."""
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
    command = [*NICE, str(build()), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"{words[0]} of the Go client: {done.stderr[-1000:]}")
    lines = (line for line in done.stdout.splitlines() if line.startswith("{"))
    return sorted(map(json.loads, lines), key=lambda row: json.dumps(row, sort_keys=True))


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        cluster_of(sys.argv[1], Path(directory) / "mq", SCENARIO) as cluster,
    ):
        for name, found in rows(cluster).items():
            for row in found:
                sys.stdout.write(f"{name} {json.dumps(row)}\n")


if __name__ == "__main__":
    main()
