"""A network of its own, where a server may listen for other machines and none is there.

What listens beyond loopback in a test would be reached from outside by whoever comes at that moment.
"""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

#: An address that is not of loopback: who asks there comes from there.
ADDRESS = "198.51.100.7"
_SETUP = f'ip link set lo up && ip address add {ADDRESS}/32 dev lo && exec "$@"'
_APART = ("unshare", "--map-root-user", "--net", "sh", "-c", _SETUP, "sh")


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in a new network; the test is skipped where this machine lets nobody make one."""
    if shutil.which("ip") is None or subprocess.run([*_APART, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network of its own: unshare and ip are needed, and that users may make name spaces")
    command = [*_APART, sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
