"""Where the time of a micro-batch goes: Spark's own phases, for our stream and for one whose batches are ready.

python -m live.phases [ROWS]      with benches/ on PYTHONPATH
"""

from __future__ import annotations

import sys
from contextlib import ExitStack

from broker.sides import Rmqfast
from data import Dataset, store
from live.peers import RAISED, entered, spark
from live.streams import BATCHES
from machine import ForeignLoad
from peer import Answer, Peer

ROWS = 524_288
TURNS = 4  # the last of them is printed
PHASES = ("latestOffset", "queryPlanning", "walCommit", "addBatch", "commitOffsets", "triggerExecution")


def main() -> None:
    """Prints a line for each stream and batch read."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    for label, body in (("1k", 1024), ("128", 128)):
        dataset = Dataset(label, body, rows)
        store(dataset)
        with ExitStack() as stack:
            side = entered(stack, Rmqfast, dataset, RAISED)
            peer = stack.enter_context(spark(sys.executable, "local[2]"))
            most = rows // BATCHES
            requests: tuple[tuple[object, ...], ...] = (
                ("ready_batch", body, rows),
                ("ready_stream", body, rows, most),
                ("topic_source", side.name_server, 1024),
                ("stream", side.name_server, 1024, most),
            )
            for turn in range(TURNS):
                for request in requests:
                    line = told(peer, request, label)
                    if turn == TURNS - 1:
                        print(line, flush=True)


def told(peer: Peer, request: tuple[object, ...], label: str) -> str:
    """One read."""
    with ForeignLoad() as load:
        answer: Answer = peer.ask(*request)
    phases: dict[str, float] = answer.get("phases", {})
    listed = " ".join(f"{name} {phases[name]:.0f}" for name in PHASES if name in phases)
    rate = answer["rows"] / answer["seconds"]
    cpu = answer.get("cpu_seconds", load.own_seconds) / answer["rows"] * 1e6
    return f"{label:>4} {request[0]!s:12} {rate:9.0f} rows/s, {cpu:6.2f} CPU us a row  {listed}"


if __name__ == "__main__":
    main()
