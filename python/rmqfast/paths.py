"""Paths that users pass, and checks of files. An I/O error is never reported as a missing file.

An empty string is refused, but `Path("")` cannot be, because Python makes it the current directory.
"""

from __future__ import annotations

import os
from pathlib import Path

from rmqfast import _native

__all__ = ["LocalPath", "exists", "is_directory", "is_file", "list_directory", "local_path"]

LocalPath = str | os.PathLike[str]


def local_path(given: LocalPath, name: str) -> Path:
    """Returns the local path of a user's argument. The argument may be a `file:` URL."""
    return _native.local_path(name, given)


def exists(path: LocalPath) -> bool:
    """Whether the path exists. A broken symbolic link counts as existing."""
    return _native.path_exists(path)


def is_file(path: LocalPath) -> bool:
    """Whether the path is a file. Raises `StoreIOError` if the path cannot be accessed."""
    return _native.is_file(path)


def is_directory(path: LocalPath) -> bool:
    """Whether the path is a directory. Raises `StoreIOError` if the path cannot be accessed."""
    return _native.is_directory(path)


def list_directory(path: LocalPath) -> list[Path]:
    """Returns the paths in a directory, sorted. Empty if the directory does not exist."""
    return sorted(_native.list_directory(path))
