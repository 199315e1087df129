"""Handlers of signals run amid the work of a tail: what they ask of it is answered, and never waits for ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.small_store import COUNT, small_store
from tests.waiting import PATIENCE

#: A handler interrupts a tail that waits, many times: between two looks, and amid them.
PROGRAM = """
import signal, sys
import rmqfast
from rmqfast.errors import StoreError

calls = 0

def handler(*_):
    global calls
    calls += 1
    assert tail.position == end
    try:
        assert {asked} == []
    except StoreError as error:
        assert "at work in this thread" in str(error)
    # not ==: a handler is interrupted by the next one, which counts, too
    if calls >= 40:
        tail.close()

store = rmqfast.open_store(sys.argv[1])
with store.tail("T", start="begin", stop="end") as whole:
    rows = sum(batch.num_rows for batch in whole)
    end = whole.position
tail = store.tail("T", start=end, poll_interval=0.001)
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
assert next(tail, None) is None
signal.setitimer(signal.ITIMER_REAL, 0)
print(rows, calls)
"""


@pytest.mark.parametrize("asked", ["tail.damage", "tail.retained"])
def test_a_handler_may_ask_a_tail_that_its_thread_waits_for(tmp_path: Path, asked: str) -> None:
    small_store(tmp_path / "store")
    program = [sys.executable, "-c", PROGRAM.replace("{asked}", asked), str(tmp_path / "store")]
    done = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    rows, calls = map(int, done.stdout.split())
    assert rows == COUNT
    assert calls >= 40
