"""The machine that the figures come from, and the load that others put on it meanwhile."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Self

from processes import CpuTime, busy_seconds

ROOT = Path(__file__).parent.parent


def facts() -> dict[str, str | int | float]:
    """CPU, cores, memory, kernel, versions and load average."""
    versions = {name: version(name) for name in ("rmqfast", "pyarrow", "pyspark", "pandas", "numpy")}
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count() or 0,
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "java": first_line("java", "-version"),
        "rustc": first_line("rustc", "--version"),
        "load_average": os.getloadavg()[0],
        **versions,
    }


def commit() -> str:
    """Short name of the commit, with `-dirty` where files differ from it."""
    return first_line("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude", "*")


def commit_time() -> str:
    """When the commit was made: of two records of a day, that of the later commit is the newer one."""
    return first_line("git", "-C", str(ROOT), "show", "--no-patch", "--format=%cI")


def cpu_name() -> str:
    """The processor's own name."""
    names = [line.split(":")[1] for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    return names[0].strip() if names else platform.machine()


def version(package: str) -> str:
    """Version of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def first_line(*command: str) -> str:
    """The first line that a command prints."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return ((done.stdout + done.stderr).splitlines() or ["unknown"])[0]


class ForeignLoad:
    """Cores that others than we and our descendants kept busy while the block ran, and our own CPU seconds."""

    def __init__(self) -> None:
        self.cores = self.own_seconds = 0.0
        self._begin = self._busy = 0.0

    def __enter__(self) -> Self:
        self._begin, self._busy, self._own = time.perf_counter(), busy_seconds(), CpuTime()
        return self

    def __exit__(self, *_: object) -> None:
        wall = max(time.perf_counter() - self._begin, 1e-9)
        self.own_seconds = self._own.seconds
        foreign = (busy_seconds() - self._busy) - self.own_seconds
        self.cores = round(max(foreign, 0.0) / wall, 2)
