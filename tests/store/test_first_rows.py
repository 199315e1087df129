"""Processes that read the first rows of a scan and end: no reader lets them hang or abort.

Each reader does it 100 times with RMQFAST_FULL=1, or as often as RMQFAST_FIRST_ROWS says.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import rmqfast
from tests.effort import effort

from .first_rows import READERS

pytestmark = pytest.mark.slow

TIMES = effort("RMQFAST_FIRST_ROWS", 1, 100)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("first") / "store"
    with rmqfast.open_store(path, mode="a", options=rmqfast.AppendOptions(file_size=1 << 22)) as writer:
        body = b"x" * 300
        writer.append_many(rmqfast.Message("T", body, tags=f"t{n % 5}", queue_id=n % 4) for n in range(40_000))
    return path


@pytest.mark.timeout(300 * TIMES)  # a time for hangs, as everywhere, and not one for the number of runs
@pytest.mark.parametrize("threads", [1, 4])
def test_a_process_ends_behind_the_first_rows(store: Path, threads: int) -> None:
    program = [sys.executable, "-m", "tests.store.first_rows", str(store), str(threads), str(TIMES)]
    ended = subprocess.run(program, capture_output=True, text=True, check=False)
    found = Counter(ended.stdout.splitlines())
    assert found == {f"{reader} 0": TIMES for reader in READERS}, ended.stderr
