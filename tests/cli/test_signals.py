"""A signal ends what waits for it, wherever in its wait it is; as a process, which may hang."""

from __future__ import annotations

import subprocess
import sys

from tests.waiting import PATIENCE

WAITS = """
import itertools, signal, sys
from rmqfast.cli import endings
endings._INTERVAL = 0.001  # so that a wait is soon over, and its last lines come

def waited(at_line):
    '''Waits, and gets the signal at one of the lines that its thread comes to, the library's among them.'''
    lines = itertools.count()
    def trace(frame, event, _):
        if event == "line" and next(lines) == at_line:
            signal.raise_signal(signal.SIGTERM)
        return trace
    with endings.StopSignals() as stop:
        assert not stop.is_noted
        sys.settrace(trace)
        while not stop.wait():
            pass
        sys.settrace(None)

for at_line in range(60):
    waited(at_line)
print("ended each time")
"""


def test_a_signal_ends_a_wait_at_whichever_line_it_comes() -> None:
    done = subprocess.run([sys.executable, "-c", WAITS], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.stdout, done.stderr) == ("ended each time\n", "")
