"""Runs targets of the Makefile, one after the other, and writes what came of each: `make test-long`, `make soak`.

    python -m tests.record test-long long-faults long-python

Each target runs, whatever became of the one before. The result is `tests/results/DATE-NAME.md`; the exit code is 1 if
anything failed.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp

from tests.runs import Run, duration, run

_RESULTS = Path(__file__).parent / "results"


def main() -> int:
    """Runs the targets that are given behind the name of the result."""
    name, *targets = sys.argv[1:]
    began, commit, logs = datetime.now(UTC), _commit(), Path(mkdtemp(prefix=f"{name}-"))
    runs = []
    for target in targets:
        sys.stdout.write(f"make {target}: all that it prints is in {logs / target}.log\n")
        sys.stdout.flush()
        runs.append(run(("make", target), logs / f"{target}.log"))
        sys.stdout.write(_row(runs[-1]))
    _RESULTS.mkdir(exist_ok=True)
    path = _RESULTS / f"{began:%Y-%m-%d}-{name}.md"
    path.write_text(_page(name, began, commit, runs))
    sys.stdout.write(f"written: {path}\n")
    return 1 if any(done.failed for done in runs) else 0


def _commit() -> str:
    """What is about to run: a commit that is made meanwhile is not it."""
    described = subprocess.run(("git", "describe", "--always", "--dirty"), capture_output=True, text=True, check=True)
    return described.stdout.strip()


def _page(name: str, began: datetime, commit: str, runs: Sequence[Run]) -> str:
    total = duration(sum(done.seconds for done in runs))
    failed = [f"- `{test}`\n" for done in runs for test in done.failed]
    return (
        f"# make {name}, {began:%Y-%m-%d %H:%M} UTC\n\n"
        f"Commit {commit}; {os.cpu_count()} cores, {platform.machine()}, "
        f"Python {platform.python_version()}; {total} minutes in all.\n\n"
        "| command | passed | failed | minutes |\n| --- | ---: | ---: | ---: |\n"
        + "".join(map(_row, runs))
        + ("\nFailed:\n\n" + "".join(failed) if failed else "")
    )


def _row(done: Run) -> str:
    return f"| `{done.command}` | {done.passed:,} | {len(done.failed)} | {duration(done.seconds)} |\n"


if __name__ == "__main__":
    sys.exit(main())
