"""What the machine itself allows: the bare Rust loop over a log, the same bytes written to fresh files, memcpy."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from data import SEGMENT, TAG, TOPIC, Dataset
from machine import ROOT
from peer import Answer, Failed, Missing, timed

EXAMPLE = ["cargo", "run", "--release", "--quiet", "-p", "rmqfast-store", "--example", "bare_loop", "--"]
SCAN = (
    "bare loop"  # the line of the example that parses, prefetches and copies bodies and the short texts, on one thread
)
BLOCK = 4 << 20
# beside its record a message costs a consume-queue unit and two index entries: KEYS and UNIQ_KEY
INDEXED = 20 + 2 * 20


def bare_scan(store: Path) -> Answer:
    """The bare Rust loop from commit log to Arrow."""
    if not (ROOT / "rust/store/examples/bare_loop.rs").exists():
        raise Missing("rust/store/examples/bare_loop.rs is not there")
    if shutil.which("cargo") is None:
        raise Missing("cargo is not installed")
    command = [*EXAMPLE, str(store), TOPIC, TAG, "1", SCAN]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"bare_loop: {done.stderr.strip()[-300:]}")
    loops = {loop["name"]: loop for loop in map(json.loads, done.stdout.splitlines())}
    if SCAN not in loops:
        raise Failed(f"bare_loop: expected a line named {SCAN!r}, got {sorted(loops)}")
    answer: Answer = loops[SCAN]
    return answer


def bare_write(dataset: Dataset, directory: Path) -> Answer:
    """Writes as many bytes as an indexed store of the dataset takes, to fresh files of one segment each."""
    directory.mkdir()
    block = memoryview(np.random.default_rng(5).bytes(BLOCK))
    total = dataset.rows * (dataset.record + INDEXED)
    return timed(lambda: {"rows": dataset.rows, "written": write_files(directory, block, total)})


def write_files(directory: Path, block: memoryview, total: int) -> int:
    """Writes that many bytes block by block, a new file after every segment."""
    for first in range(0, total, SEGMENT):
        file = os.open(directory / f"{first:020d}", os.O_CREAT | os.O_WRONLY)
        for at in range(first, min(first + SEGMENT, total), len(block)):
            os.write(file, block[: total - at])
        os.close(file)
    return total


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
