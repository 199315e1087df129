"""The command line as tests call it: in this process, or as a real process with its pipes and signals."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner, Result

from rmqfast.cli.app import app

COMMAND = (sys.executable, "-m", "rmqfast.cli")


def run(*arguments: str | Path) -> Result:
    """Runs the command line in this process."""
    return CliRunner().invoke(app, [str(a) for a in arguments], prog_name="rmqfast")


def run_process(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the command line as a process."""
    command = [*COMMAND, *map(str, arguments)]
    env = os.environ | environment
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=240)
