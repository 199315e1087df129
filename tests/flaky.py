"""Runs tests again and again, half of the runs beside busy processes, and lists what ever failed: `make flaky`.

    python -m tests.flaky --runs 20 --busy 4 -- make test-quick

Every second run has `--busy` processes beside it that never rest. The exit code is 1 if anything failed, once.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

from tests.runs import duration, run

_BUSY = (sys.executable, "-c", "while True: pass")


def main() -> int:
    """Runs the command that is given, prints a line a run, and what failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=20, help="how often; 20")
    parser.add_argument("--busy", type=int, default=4, help="busy processes beside every second run; 4")
    parser.add_argument("command", nargs="+", help="what runs the tests")
    options = parser.parse_args()
    logs = Path(mkdtemp(prefix="flaky-"))
    failures: Counter[str] = Counter()
    sys.stdout.write(f"logs: {logs}\n run  busy  passed  failed   time\n")
    for number in range(1, options.runs + 1):
        busy = 0 if number % 2 else options.busy
        log = logs / f"{number}.log"
        with _busy_processes(busy):
            done = run(options.command, log)
        failures.update(done.failed)
        sys.stdout.write(f"{number:4}  {busy:4}  {done.passed:6}  {len(done.failed):6}  {duration(done.seconds):>5}\n")
        sys.stdout.flush()
        if not done.failed:
            log.unlink()
    sys.stdout.writelines(f"failed {times} of {options.runs}: {name}\n" for name, times in failures.most_common())
    sys.stdout.write(f"{options.runs} runs, {len(failures)} tests ever failed\n")
    return 1 if failures else 0


@contextlib.contextmanager
def _busy_processes(count: int) -> Iterator[None]:
    processes = [subprocess.Popen(_BUSY) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
