"""Measures how long Java push consumers wait for their first message, on our broker and on RocketMQ's in turn.

python -m tests.interop.first_message [--starts 300] [--queues 4] [--tag TAG]     (from the root of the project)

Each start is a group and a client of its own, of a topic that has messages. A second after its start a client
rebalances, which raises the version of its subscription, and begins to send heartbeats. The heartbeat of the
rebalance is left out while another one is on its way; then pulls are refused until the client sends the next one.
Whether it comes to that is a matter of how long the rebalance takes, which asks the broker about each queue.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.broker.interop.cluster import Cluster, cluster_of

from .rocketmq import build, create_topic, java

TOPIC, MESSAGES, ALL = "first_message", 40, "*"
#: Seconds after which a start is late. Pulls go half a second after the rebalance.
LATE = (5, 20)
QUANTILES = (0.5, 0.9, 0.99, 1.0)
HEAP, HOUR = "-Xmx512m", 3600.0


@dataclass(frozen=True)
class Starts:
    """Starts consumers.

    Attributes:
        client: The release of the client.
        queues: Queues of the topic.
        tag: What consumers subscribe to, and what messages have; `*` for all, and none.
        together: How many start at the same time.
        is_known: Whether the retry topics of the groups are there before, as those of any group that was online once.
        is_fresh: Whether each has a JVM of its own.
    """

    client: str
    queues: int
    tag: str
    together: int
    is_known: bool
    is_fresh: bool

    def fill(self, cluster: Cluster) -> None:
        """Makes the topic and its messages."""
        create_topic(cluster.broker, TOPIC, self.queues)
        tags = () if self.tag == ALL else ("--tags", self.tag)
        words = ("--namesrv", cluster.name_server, "--topic", TOPIC, "--count", MESSAGES, *tags)
        java(self.client, "Produce", *words)

    def play(self, cluster: Cluster, first: int, count: int) -> list[Any]:
        """Starts so many consumers; a row each."""
        if self.is_known:
            for number in range(first, first + count):
                create_topic(cluster.broker, f"%RETRY%{_group(number)}", 1)
        if not self.is_fresh:
            return self._rows(cluster, first, count, self.together)
        with ThreadPoolExecutor(self.together) as pool:
            found = pool.map(lambda number: self._rows(cluster, number, 1, 1), range(first, first + count))
            return [row for rows in found for row in rows]

    def _rows(self, cluster: Cluster, first: int, count: int, together: int) -> list[Any]:
        words = ["--namesrv", cluster.name_server, "--topic", TOPIC, "--prefix", _group(""), "--expr", self.tag]
        words += ["--first", str(first), "--starts", str(count), "--together", str(together)]
        told = java(self.client, "FirstMessage", *words, heap=HEAP, seconds=HOUR)
        return [json.loads(line) for line in told.splitlines()]


def table(rows: dict[str, list[Any]]) -> str:
    quantiles = " / ".join(f"{at:.0%}" for at in QUANTILES)
    heads = ["broker", "starts", f"first message, ms: {quantiles}", *(f"> {seconds} s" for seconds in LATE)]
    heads += ["never", "refused", f"heartbeats, ms: {quantiles}"]
    lines = ["| " + " | ".join(heads) + " |", "| --- " * len(heads) + "|"]
    return "\n".join([*lines, *(_line(name, of_one) for name, of_one in rows.items())]) + "\n"


def _line(name: str, rows: Sequence[Any]) -> str:
    waits = [row["firstMessage"] for row in rows if row.get("firstMessage") is not None]
    # the first one makes the group, before the rebalance
    heartbeats = [millis for row in rows for millis in row.get("heartbeats", [])[1:]]
    late = [sum(millis > seconds * 1000 for millis in waits) for seconds in LATE]
    refused = sum(row.get("refused", 0) > 0 for row in rows)
    cells = [name, len(rows), _quantiles(waits), *late, len(rows) - len(waits), refused, _quantiles(heartbeats)]
    return "| " + " | ".join(map(str, cells)) + " |"


def _quantiles(values: Sequence[float]) -> str:
    ordered = sorted(values)
    return " / ".join(f"{ordered[min(len(ordered) - 1, int(len(ordered) * at))]:.1f}" for at in QUANTILES if ordered)


def _group(number: object) -> str:
    return f"first_message_{number}"


def main() -> None:
    """Prints the table after each turn; the rows go to `--out`."""
    parser = argparse.ArgumentParser(prog="python -m tests.interop.first_message")
    parser.add_argument("--starts", type=int, default=300, help="on each broker")
    parser.add_argument("--turn", type=int, default=50, help="starts on one broker before it is the next one's turn")
    parser.add_argument("--together", type=int, default=4, help="consumers that start at the same time")
    parser.add_argument("--queues", type=int, default=4, help="queues of the topic")
    parser.add_argument("--tag", default=ALL, help="what consumers subscribe to")
    parser.add_argument("--known", action="store_true", help="groups that have a retry topic already")
    parser.add_argument("--fresh", action="store_true", help="a JVM for each consumer")
    parser.add_argument("--client", default="5.3.3", help="release of the client")
    parser.add_argument("--brokers", nargs="+", default=["ours", "5.3.3"])
    parser.add_argument("--out", type=Path, help="a file for the rows, as JSON")
    options = parser.parse_args()
    starts = Starts(options.client, options.queues, options.tag, options.together, options.known, options.fresh)
    build(options.client)
    rows: dict[str, list[Any]] = {name: [] for name in options.brokers}
    with tempfile.TemporaryDirectory(prefix="first-message-") as directory, ExitStack() as stack:
        clusters = {name: cluster_of(name, Path(directory) / name) for name in options.brokers}
        for cluster in clusters.values():
            stack.enter_context(cluster)
            starts.fill(cluster)
        for first in range(0, options.starts, options.turn):
            for name, cluster in clusters.items():
                rows[name] += starts.play(cluster, first, min(options.turn, options.starts - first))
            sys.stdout.write(table(rows))
            sys.stdout.flush()
            if options.out is not None:
                options.out.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
