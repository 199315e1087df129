"""Runs RocketMQ's own clients on a cluster; their masked rows can be compared between runs.

python -m tests.broker.interop.scenarios CLUSTER CLIENT [NAME ...]     (CLUSTER: ours, 4.9.4, 5.3.3 or 5.5.0)
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.interop.rocketmq import java

from . import masks
from .cluster import SCENARIO, Cluster, cluster_of

Rows = dict[str, list[Any]]
#: What is compared with live brokers alone: what 4.9.4 cannot answer to clients of 5.x, 5.3.3 answers in its own way.
LIVE = ("dashboard", "exporter", "odd")


def names() -> list[str]:
    """The scenarios there are."""
    return [json.loads(line)["scenario"] for line in java("4.9.4", "Scenario", "--list").splitlines()]


def play(cluster: Cluster, client: str, only: list[str] | None = None, second: Cluster | None = None) -> Rows:
    """The rows of each scenario, masked and in order of their text: what comes together comes in any order.

    With a second broker beside the cluster the scenarios are those of two brokers.
    """
    offsets = f"-Drocketmq.client.localOffsetStoreDir={cluster.directory / 'client-offsets'}"
    words = ["--namesrv", cluster.name_server, "--broker", cluster.broker]
    words += [] if second is None else ["--second", second.broker]
    told = java(client, "Scenario", *words, *(["--only", ",".join(only)] if only else []), extra=offsets)
    rows: Rows = {}
    for line in map(json.loads, told.splitlines()):
        kept = rows.setdefault(line["scenario"], [])
        if "row" in line:
            kept.append(masks.row(line["row"], cluster))
        else:
            sys.stderr.write(f"{line['scenario']}: {line['seconds']} s\n")
    return {name: sorted(kept, key=lambda row: json.dumps(row, sort_keys=True)) for name, kept in sorted(rows.items())}


def main() -> None:
    name, client, *only = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory, cluster_of(name, Path(directory) / "mq", SCENARIO) as cluster:
        rows = play(cluster, client, only)
    for scenario, kept in rows.items():
        for row in kept:
            sys.stdout.write(f"{scenario} {json.dumps(row, ensure_ascii=False, sort_keys=True)}\n")


if __name__ == "__main__":
    main()
