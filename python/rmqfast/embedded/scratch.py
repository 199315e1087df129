"""A directory that is thrown away."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path


class Scratch:
    """A new directory, removed by `remove`, or when the process ends that made it; its forks leave it alone.

    Example:
        >>> scratch = Scratch()
        >>> scratch.path.is_dir(), scratch.remove(), scratch.path.exists()
        (True, None, False)
    """

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="rmqfast-"))
        self._finalizer = weakref.finalize(self, _remove, self.path, os.getpid())

    def remove(self) -> None:
        """Removes it with all that is in it; a second call does nothing."""
        self._finalizer()


def _remove(path: Path, pid: int) -> None:
    if os.getpid() == pid:
        shutil.rmtree(path, ignore_errors=True)
