"""The stub of the extension says what the built extension has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_the_stub_matches_the_binary(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mypy.stubtest", "rmqfast._native._rmqfast"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
