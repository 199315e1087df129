"""The command line as tests call it: in this process, or as a real process with its pipes and signals."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Literal

from typer.testing import CliRunner, Result

from rmqfast.cli.app import app

COMMAND = (sys.executable, "-m", "rmqfast")


def run(*arguments: str | Path) -> Result:
    """Runs the command line in this process."""
    return CliRunner().invoke(app, [str(a) for a in arguments], prog_name="rmqfast")


def run_process(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the command line as a process."""
    command = [*COMMAND, *map(str, arguments)]
    env = os.environ | environment
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def run_on_terminal(
    stream: Literal["stdout", "stderr"], *arguments: str | Path, **environment: str
) -> tuple[int, bytes]:
    """Runs the command line where one stream is a terminal of 80 columns: its exit code, and what it wrote there."""
    ours, theirs = pty.openpty()
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm", "COLUMNS": "80"} | environment
    stdout, stderr = (theirs if stream == name else subprocess.DEVNULL for name in ("stdout", "stderr"))
    with subprocess.Popen([*COMMAND, *map(str, arguments)], env=env, stdout=stdout, stderr=stderr) as process:
        os.close(theirs)
        written = b""
        while piece := _read(ours):
            written += piece
        code = process.wait()
    os.close(ours)
    return code, written


def _read(descriptor: int) -> bytes:
    """Bytes of a terminal; none once nobody has its other end, which Linux says by EIO."""
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""
