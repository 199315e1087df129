"""Runs targets of the Makefile and says what came of each: `.ci/run`, `make test-long`, `make soak`.

    python -m tests.record [--no-file] NAME STEP ...

A step is a target, or lanes of targets that run at the same time: `test+lint,test-real` runs `test` beside `lint`, then
`test-real`. A target that fails does not stop the next. The result goes to `tests/results/DATE-NAME.md`; the exit code
is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp

from tests.runs import Run, duration, run

_RESULTS = Path(__file__).parent / "results"
#: How much of a failed target's output is shown.
_LINES = 200


def main() -> int:
    """Runs the steps that are given after the name of the result."""
    parser = argparse.ArgumentParser(prog="python -m tests.record")
    parser.add_argument("--no-file", action="store_true", help="print the result, write nothing to tests/results")
    parser.add_argument("name", help="of the result")
    parser.add_argument("steps", nargs="+", metavar="STEP", help="a target, or lanes as test+lint,test-real")
    options = parser.parse_args()
    start, clock, commit = datetime.now(UTC), time.monotonic(), _commit()
    logs = Path(mkdtemp(prefix=f"{options.name}-"))
    runs = [done for step in options.steps for done in _run_step(step, logs)]
    page = _page(options.name, start, commit, runs, time.monotonic() - clock)
    sys.stdout.write(f"\n{page}")
    if not options.no_file:
        path = _free_path(f"{start:%Y-%m-%d}-{options.name}")
        path.write_text(page)
        sys.stdout.write(f"written: {path}\n")
    return 1 if any(done.failed for done in runs) else 0


def _commit() -> str:
    """The commit that is about to run; one that is made meanwhile is not."""
    described = subprocess.run(("git", "describe", "--always", "--dirty"), capture_output=True, text=True, check=True)
    return described.stdout.strip()


def _run_step(step: str, logs: Path) -> list[Run]:
    lanes = [lane.split(",") for lane in step.split("+")]
    with ThreadPoolExecutor(len(lanes)) as pool:
        return [done for runs in pool.map(lambda lane: list(_run_lane(lane, logs)), lanes) for done in runs]


def _run_lane(targets: Sequence[str], logs: Path) -> Iterator[Run]:
    for target in targets:
        log = logs / f"{target}.log"
        _say(f"make {target}: output goes to {log}\n")
        done = run(("make", target), log)
        if done.failed:
            with log.open(errors="replace") as lines:
                _say("".join(deque(lines, _LINES)))
        _say(_row(done))
        yield done


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _free_path(stem: str) -> Path:
    """A new file of the results; a day may have several runs."""
    path, number = _RESULTS / f"{stem}.md", 1
    while path.exists():
        number += 1
        path = _RESULTS / f"{stem}-{number}.md"
    return path


def _page(name: str, start: datetime, commit: str, runs: Sequence[Run], seconds: float) -> str:
    failed = [f"- `{test}`\n" for done in runs for test in done.failed]
    return (
        f"# {name}, {start:%Y-%m-%d %H:%M} UTC\n\n"
        f"Commit {commit}; {os.cpu_count()} cores, {platform.machine()}, "
        f"Python {platform.python_version()}; {duration(seconds)} minutes in all.\n\n"
        "| command | passed | failed | minutes |\n| --- | ---: | ---: | ---: |\n"
        + "".join(map(_row, runs))
        + ("\nFailed:\n\n" + "".join(failed) if failed else "")
    )


def _row(done: Run) -> str:
    return f"| `{done.command}` | {done.passed:,} | {len(done.failed)} | {duration(done.seconds)} |\n"


if __name__ == "__main__":
    sys.exit(main())
