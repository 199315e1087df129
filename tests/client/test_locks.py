"""No handler of `logging`, listener, hook or strategy runs under a lock that another thread waits for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_clients_call_nobody_under_a_lock_and_send_their_own_log_lines_at_debug() -> None:
    command = [sys.executable, "-m", "tests.client.lock_audit"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["faults"] == []
    assert seen["sent"] > 50
