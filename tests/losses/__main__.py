"""Harms each subject for some seconds, and prints one table; the exit code is 1 if a loss was silent.

python -m tests.losses [--seconds 720] [--first 1] [--seeds N] [SUBJECT...]
"""

from __future__ import annotations

import argparse
import faulthandler
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

from tests.attack.figures import table

from .answers import BrokerAnswers
from .attempt import Attempt, Subject
from .checkpoints import CheckpointSubject
from .metadata import MetadataSubject
from .replication import Replication
from .stores import Stores

SUBJECTS: dict[str, Callable[[], Subject]] = {
    "answers": BrokerAnswers,
    "checkpoints": CheckpointSubject,
    "metadata": MetadataSubject,
    "replication": Replication,
    "stores": Stores,
}

#: More than any attempt takes on a busy machine.
_MOST_SECONDS = 300
_HEAD = ("subject", "attempts", "rows", "missing and told", "refused", "s", "failures")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.losses")
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"any of {', '.join(SUBJECTS)}; all")
    parser.add_argument("--seconds", type=float, default=60, help="for each subject")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, help="how many seeds, instead of a time")
    words = parser.parse_args()
    if unknown := [name for name in words.subjects if name not in SUBJECTS]:
        parser.error(f"expected any of {', '.join(SUBJECTS)}, got {', '.join(unknown)}")
    rows: list[tuple[str, ...]] = [_HEAD]
    failures: list[str] = []
    for name in words.subjects or list(SUBJECTS):
        row, failed = _run(name, _seeds(words.first, words.seeds, words.seconds))
        rows.append(row)
        # a run of hours may be ended before its table
        sys.stderr.write("  ".join(row) + "\n")
        failures += failed
    sys.stdout.write(table(rows) + "".join(failures))
    return 1 if failures else 0


def _seeds(first: int, number: int | None, seconds: float) -> Iterator[int]:
    end = time.monotonic() + seconds
    for seed in count(first):
        if (seed - first == number) if number is not None else (time.monotonic() >= end):
            return
        yield seed


def _run(name: str, seeds: Iterator[int]) -> tuple[tuple[str, ...], Sequence[str]]:
    """The row of the table, and a text for each seed that failed."""
    started = time.monotonic()
    done: list[Attempt] = []
    failures: list[str] = []
    subject = SUBJECTS[name]()
    try:
        for seed in seeds:
            directory = Path(tempfile.mkdtemp(prefix=f"losses-{name}-{seed}-"))
            # one that hangs ends the run; its seed is in the name of the directory that it leaves
            faulthandler.dump_traceback_later(_MOST_SECONDS, exit=True)
            try:
                done.append(subject.attempt(random.Random(f"{name} {seed}"), directory))
            except Exception:  # noqa: BLE001 - each failure is shown, and the next seed tried
                failures.append(_failure(name, seed, traceback.format_exc()))
            finally:
                faulthandler.cancel_dump_traceback_later()
                shutil.rmtree(directory, ignore_errors=True)
    finally:
        subject.close()
    numbers = (
        len(done) + len(failures),
        sum(attempt.rows for attempt in done),
        sum(attempt.missing for attempt in done),
        sum(attempt.refused for attempt in done),
        round(time.monotonic() - started),
        len(failures),
    )
    return (name, *(f"{number:,}" for number in numbers)), failures


def _failure(name: str, seed: int, trace: str) -> str:
    text = f"\n{name}, seed {seed}: python -m tests.losses {name} --first {seed} --seeds 1\n{trace}"
    sys.stderr.write(text)
    return text


if __name__ == "__main__":
    sys.exit(main())
