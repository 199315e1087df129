"""Ingests that are killed at random moments: `python -m tests.tables.kills STORE LAKE FORMAT KILLS SEED [ADDRESS]`.

With the address of an S3 server, tables are there. Each ingest is a process of its own, forked from this one, which has
imported all libraries but used none. Prints how many of them were killed, as JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

# imported before the first fork, so that kills do not meet imports
import pyiceberg.catalog.sql
import pyiceberg.io.pyarrow  # noqa: F401

from tests.tables.lakes import Lake
from tests.tables.s3_lakes import S3Lake
from tests.tables.stored_rows import append

MESSAGES = 4000
COMMIT_BYTES = 120_000


def in_child(act: Callable[[], object]) -> int:
    """Runs a function in a forked process. Returns its exit status, negative for a signal."""
    child = os.fork()
    if child == 0:
        try:
            act()
        except BaseException as error:  # noqa: BLE001 - the parent shows it
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def main(store: Path, lake: Lake, kills: int, seed: int) -> dict[str, int]:
    """Kills `kills` ingests, while the store grows."""
    chance = random.Random(seed)
    count = killed = finished = 0
    longest = 0.0

    def grow() -> None:
        append(store, MESSAGES, topics=7, start=count)

    def ingest_until(seconds: float | None) -> None:
        if seconds is not None:
            timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL))
            timer.daemon = True
            timer.start()
        lake.ingest(store, commit_bytes=COMMIT_BYTES)

    while killed < kills:
        if finished * 3 >= killed:
            # enough to write that a kill meets it
            assert in_child(grow) == 0
            count += MESSAGES
        # the first one tells how long they take
        moment = chance.uniform(0, longest) if longest else None
        began = time.monotonic()
        code = in_child(lambda moment=moment: ingest_until(moment))  # type: ignore[misc]
        assert code in {0, -signal.SIGKILL}, code
        killed, finished = killed + (code != 0), finished + (code == 0)
        if code == 0:
            longest = max(longest, time.monotonic() - began)
    assert in_child(lambda: ingest_until(None)) == 0
    return {"killed": killed, "finished": finished, "messages": count}


if __name__ == "__main__":
    path, directory, name, number, seed_text, *addresses = sys.argv[1:]
    place = S3Lake(Path(directory), name, *addresses) if addresses else Lake(Path(directory), name)
    result = main(Path(path), place, int(number), int(seed_text))
    sys.stdout.write(json.dumps(result))
