"""Makes tests/golden/broker from real clusters: what rmqfast's is held against, so that no test needs a real one.

python -m tests.broker.interop.record [scenarios] [mqadmin] ...     (all of them without a name)
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import mqadmin, replay, replay_answers, scenarios
from .cluster import SCENARIO, RealCluster
from .goldens import keep
from .tag_conflict import conflict


def on(version: str, ask: Callable[[RealCluster], Any], properties: tuple[str, ...] = SCENARIO) -> Any:
    with (
        tempfile.TemporaryDirectory() as directory,
        RealCluster(version, Path(directory) / "mq", properties) as cluster,
    ):
        return ask(cluster)


def record_scenarios() -> None:
    """Clients of both versions; what those of 5.3.3 cannot do on 4.9.4 they do as on a broker of their own."""
    recorded = [name for name in scenarios.names() if name not in scenarios.LIVE]
    keep("scenarios-4.9.4", on("4.9.4", lambda cluster: scenarios.play(cluster, "4.9.4", recorded)))
    old = on("4.9.4", lambda cluster: scenarios.play(cluster, "5.3.3", recorded))
    new = on("5.3.3", lambda cluster: scenarios.play(cluster, "5.3.3", recorded))
    for name in (name for name, rows in old.items() if any(refused(row) for row in rows)):
        old[name] = new[name]
    keep("scenarios-5.3.3", old)


def refused(row: dict[str, Any]) -> bool:
    """Whether the old broker did not know what the new client asked for."""
    nothing_came = row.get("kind") == "count" and 0 in (row.get("first"), row.get("polled"))
    return "failed" in row or nothing_came


def record_mqadmin() -> None:
    keep("mqadmin-4.9.4", on("4.9.4", lambda cluster: list(mqadmin.ask_all(cluster))))


def record_tag_conflict() -> None:
    keep("tag-conflict-4.9.4", on("4.9.4", conflict, ()))


def record_replay() -> None:
    """Requests of 5.3.3 clients to a 5.3.3 broker, replayed at a 4.9.4 broker."""
    keep("replay-5.3.3", on("4.9.4", lambda cluster: replay_answers.answers("5.3.3", cluster), replay.PROPERTIES))


def main() -> None:
    todo = {name.removeprefix("record_"): make for name, make in globals().items() if name.startswith("record_")}
    for name in sys.argv[1:] or todo:
        todo[name]()


if __name__ == "__main__":
    main()
