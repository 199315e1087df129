"""Runs the fault tests of the store crate, and prints one table of what they did; the exit code is that of the tests.

RMQFAST_SEEDS and RMQFAST_MUTATIONS say how much is tried: `make faults`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# all crates, as `make test`, so that what they share is not built once more with other features
COMMAND = ("cargo", "test", "--locked", "--test", "store")
FAULTS = ("faults::", "recover::")
COLUMNS = ("fault", "runs", "lost", "duplicates", "refused", "seconds")

Figures = dict[str, Any]


def main() -> int:
    """Runs the tests: those whose names hold what is given, or all."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "figures.jsonl"
        command = [*COMMAND, "--no-fail-fast", "--", *(sys.argv[1:] or FAULTS)]
        done = subprocess.run(command, env={**os.environ, "RMQFAST_FIGURES": str(path)}, check=False)
        lines = path.read_text().splitlines() if path.exists() else []
    found: list[Figures] = sorted((json.loads(line) for line in lines), key=lambda figures: str(figures["fault"]))
    sys.stdout.write("\n" + table(found) + "".join(map(failures, found)))
    return done.returncode


def table(found: Sequence[Figures]) -> str:
    """A line for each fault; numbers are under the ends of their names."""
    rows = [COLUMNS, *([cell(figures[column]) for column in COLUMNS] for figures in found)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(COLUMNS))]
    text = ""
    for fault, *numbers in rows:
        cells = [number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True)]
        text += "  ".join([fault.ljust(widths[0]), *cells]) + "\n"
    return text


def cell(value: object) -> str:
    """A number with its thousands apart, seconds with one digit."""
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def failures(figures: Figures) -> str:
    """How the cases that failed are run again, a line for each."""
    again = f"{' '.join(COMMAND)} -- {figures['test']}"
    return "".join(f"failed: RMQFAST_SEED={seed} {again}\n" for seed in figures["failed"])


if __name__ == "__main__":
    sys.exit(main())
