"""Limits of the machine: bare Rust loops over a log and into new files, memcpy."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from data import TAG, TOPIC, Dataset
from machine import ROOT
from peer import Answer, Failed, Missing, timed

SCAN = (
    "bare loop"  # the line of the example that parses, prefetches and copies bodies and the short texts, on one thread
)


def bare_scan(store: Path) -> Answer:
    """The bare Rust loop from commit log to Arrow."""
    command = [*example("bare_loop"), str(store), TOPIC, TAG, "1", SCAN]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"bare_loop: {done.stderr.strip()[-300:]}")
    loops = {loop["name"]: loop for loop in map(json.loads, done.stdout.splitlines())}
    if SCAN not in loops:
        raise Failed(f"bare_loop: expected a line named {SCAN!r}, got {sorted(loops)}")
    answer: Answer = loops[SCAN]
    return answer


def append_loop(what: str, dataset: Dataset, directory: Path) -> Answer:
    """One Rust thread into a new store, or one that copies as many bytes into fresh maps, their pages touched ahead."""
    command = [*example("append_loop"), what, str(directory), str(dataset.rows), str(dataset.body)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"append_loop: {done.stderr.strip()[-300:]}")
    answer: Answer = json.loads(done.stdout)
    return answer


def example(name: str) -> list[str]:
    """The command that runs an example of the store crate."""
    if not (ROOT / f"rust/store/examples/{name}.rs").exists():
        raise Missing(f"rust/store/examples/{name}.rs is not there")
    if shutil.which("cargo") is None:
        raise Missing("cargo is not installed")
    return ["cargo", "run", "--release", "--quiet", "-p", "rmqfast-store", "--example", name, "--"]


def memory_copy(size: int) -> Answer:
    """Copies that many bytes from memory to memory; a row is a byte."""
    source, target = np.ones(size, np.uint8), np.zeros(size, np.uint8)

    def copy() -> Answer:
        np.copyto(target, source)
        return {"rows": size}

    return timed(copy)


def require_rmqfast() -> None:
    """Raises Missing where rmqfast is not installed, before large data are made for it."""
    if importlib.util.find_spec("rmqfast") is None:
        raise Missing("rmqfast is not installed")


def import_time() -> Answer:
    """`import rmqfast` in a fresh interpreter; the value is milliseconds."""
    code = "import time; t = time.perf_counter(); import rmqfast; print(time.perf_counter() - t)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Missing(f"rmqfast cannot be imported: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    return {"rows": 1, "seconds": float(done.stdout), "value": float(done.stdout) * 1000}
