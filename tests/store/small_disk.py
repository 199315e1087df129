"""A file system of its own for a program, so small that it can be filled."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

#: What every program has: `fill(ballast)` lets a file grow until no block is left.
_FILL = """
def fill(ballast):
    with ballast.open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 12))
        except OSError:
            pass
"""


def on_small_disk(script: str, megabytes: int, tmp_path: Path, *arguments: object) -> str:
    """Runs a program with a file system of its own, which it is told first; what it prints."""
    disk, path = tmp_path / "disk", tmp_path / "script.py"
    disk.mkdir()
    path.write_text(_FILL + script)
    mount = f'mount -t tmpfs -o size={megabytes}m tmpfs "$1" && exec "$2" "$3" "$1" "$4"'
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh", str(disk), sys.executable, str(path)]
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
