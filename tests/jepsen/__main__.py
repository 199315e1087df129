"""Runs seeds in both flush modes, and prints one table; the exit code is 1 if a promise was not kept.

python -m tests.jepsen [--seeds 5] [--first 1] [--events 20] [--flush ASYNC_FLUSH|SYNC_FLUSH]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.attack.figures import table

from .run import Run, run_seed

_FLUSH = ("ASYNC_FLUSH", "SYNC_FLUSH")
_HEAD = ("flush", "seed", "faults", "acknowledged", "unknown", "stored", "deliveries", "redelivered", "s", "violations")


def main() -> int:
    """Runs them; each run in a directory that is thrown away if all promises were kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.jepsen")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--events", type=int, default=20)
    parser.add_argument("--flush", choices=_FLUSH, action="append")
    words = parser.parse_args()
    rows: list[tuple[str, ...]] = [_HEAD]
    violations: list[str] = []
    for flush in words.flush or _FLUSH:
        for seed in range(words.first, words.first + words.seeds):
            directory = Path(tempfile.mkdtemp(prefix=f"jepsen-{flush}-{seed}-"))
            done = run_seed(seed, flush, words.events, directory)
            rows.append(_row(done))
            sys.stderr.write("  ".join(rows[-1]) + "\n")
            violations += [f"{flush}, seed {seed}: {violation}; see {directory}\n" for violation in done.violations]
            if not done.violations:
                shutil.rmtree(directory)
    sys.stdout.write(table(rows) + "".join(violations))
    return 1 if violations else 0


def _row(done: Run) -> tuple[str, ...]:
    history = done.history
    numbers = (
        done.faults.total(),
        len(history.acknowledged),
        len(history.unknown),
        len(history.stored),
        len(history.deliveries),
        done.redelivered,
        round(done.seconds),
        len(done.violations),
    )
    return (done.flush, str(done.seed), *map(str, numbers))


if __name__ == "__main__":
    sys.exit(main())
