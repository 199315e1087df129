"""A file of an open store that another process shortens, beside Python's own handler of signals."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import faulthandler, os, sys
from rmqfast import AppendOptions, Message, open_store
path, when = sys.argv[1:]
if when == "before":
    faulthandler.enable()
store = open_store(path, mode="a", options=AppendOptions(file_size=1 << 20, index_slots=1000, index_entries=4000))
store.append(Message("t", b"x"))
if when == "after":
    faulthandler.enable()
os.truncate(f"{path}/commitlog/{0:020}", 0)
try:
    store.append(Message("t", b"y"))
except OSError as error:
    print("refused:", error)
"""


@pytest.mark.parametrize("when", ["never", "before", "after"])
def test_a_log_that_is_shortened_ends_no_process(tmp_path: Path, when: str) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "s"), when]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "refused:" in done.stdout, done.stderr
    assert "another process has shortened the file" in done.stdout
    assert done.returncode >= 0, done.stderr
