"""Differences between operating systems, where a public face cannot show them."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

#: Frees 150 MB below what is still in use, which glibc keeps.
FREES = """
import resource
from pathlib import Path
from rmqfast.system import return_free_memory

def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

blocks = [bytes(1000) for _ in range(150_000)]
last = blocks[-1]
blocks.clear()
before = resident()
return_free_memory()
print(before - resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries give memory back themselves")
def test_memory_that_was_freed_goes_back_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", FREES], capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) > 100_000_000
