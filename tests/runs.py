"""Runs a command that runs tests, and reads from what it prints what passed and what failed.

The closing lines of pytest and of `cargo test` are understood, and those of benchmarks that `cargo bench -- --test`
tries once; a command may run several of each.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PYTEST_COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped)\b")
_PYTEST_END = re.compile(r"^=* ?(?:\d+ [a-z]+(?:, )?)+ in [\d.]+s", re.MULTILINE)
_PYTEST_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?\.py(?:::.+?)?)(?: - .*)?$", re.MULTILINE)
_CARGO_END = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed", re.MULTILINE)
_BENCH_PASSED = re.compile(r"^Success$", re.MULTILINE)
_CARGO_FAILED = re.compile(r"^test (\S+) .*\.\.\. FAILED$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a command.

    Attributes:
        command: The command, as it would be typed.
        code: Its exit code.
        passed: Tests that passed.
        failed: Names of the tests that failed; of a command that failed without naming a test, the command.
        seconds: How long it took.
    """

    command: str
    code: int
    passed: int
    failed: tuple[str, ...]
    seconds: float


def run(command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> Run:
    """Runs a command to its end; `log` gets all that it prints."""
    began = time.monotonic()
    with log.open("wb") as out:
        code = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, env=environment, check=False).returncode
    seconds = time.monotonic() - began
    typed, text = " ".join(command), log.read_text(errors="replace")
    failed = failures(text)
    return Run(typed, code, passes(text), failed or (() if code == 0 else (typed,)), seconds)


def passes(text: str) -> int:
    """The number of tests that passed, by the closing lines."""
    counts = [match for end in _PYTEST_END.finditer(text) for match in _PYTEST_COUNT.findall(end.group())]
    of_pytest = sum(int(number) for number, what in counts if what == "passed")
    return of_pytest + sum(int(passed) for passed, _ in _CARGO_END.findall(text)) + len(_BENCH_PASSED.findall(text))


def failures(text: str) -> tuple[str, ...]:
    """Which tests failed, each once, in their order."""
    return tuple(dict.fromkeys(_PYTEST_FAILED.findall(text) + _CARGO_FAILED.findall(text)))


def duration(seconds: float) -> str:
    """Minutes and seconds: `7:05`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"
