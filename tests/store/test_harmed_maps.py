"""The handler of SIGBUS beside Python's own: faults of a store's maps are healed, all others end as they would have."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import faulthandler, mmap, os, sys
from rmqfast.errors import StoreNotWritableError
from rmqfast.store import open_store
from rmqfast.message import Message
from tests.waiting import until

root, when, what = sys.argv[1:]

def is_refused():
    try:
        store.append(Message("t", b"body"))
    except StoreNotWritableError as error:
        return str(error)

if when == "before":
    faulthandler.enable()
store = open_store(root, mode="a")
store.append(Message("t", b"body"))
if when == "after":
    faulthandler.enable()
    # it is on top until the store looks after its files again
    store.append(Message("t", b"body"))
log = os.path.join(root, "commitlog", "0" * 20)
if what == "own":
    if when != "after":
        os.truncate(log, 0)
    else:
        os.remove(log)
    print(until(is_refused))
    store.close()
else:
    with open(root + ".other", "w+b") as file:
        file.truncate(8192)
        other = mmap.mmap(file.fileno(), 8192)
        file.truncate(0)
        other[5000]
    print("not reached")
"""


def run(root: Path, when: str, what: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, str(root), when, what]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, cwd=Path(__file__).parents[2]
    )


@pytest.mark.parametrize("when", ["never", "before", "after"])
def test_a_file_of_the_store_that_is_harmed_is_an_error(when: str, tmp_path: Path) -> None:
    done = run(tmp_path / "store", when, "own")
    assert (done.returncode, done.stderr) == (0, "")
    assert "another process has changed the file" in done.stdout


@pytest.mark.parametrize("when", ["never", "before", "after"])
def test_a_map_of_others_ends_the_process_as_ever(when: str, tmp_path: Path) -> None:
    done = run(tmp_path / "store", when, "foreign")
    assert (done.returncode, done.stdout) == (-signal.SIGBUS, "")
    assert ("Fatal Python error: Bus error" in done.stderr) == (when != "never")
