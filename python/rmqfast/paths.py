"""Paths of users, and checks of files: an error never counts as an absence.

`Path("")` is the current directory before anybody sees it; `""` is refused.
"""

from __future__ import annotations

import os
from pathlib import Path

from rmqfast import _native

__all__ = ["LocalPath", "exists", "is_directory", "is_file", "list_directory", "local_path"]

LocalPath = str | os.PathLike[str]


def local_path(given: LocalPath, name: str) -> Path:
    """Returns the local path of a user's argument, which may be a `file:` URL."""
    return _native.local_path(name, given)


def exists(path: LocalPath) -> bool:
    """Whether the name exists, even as a link to nothing."""
    return _native.path_exists(path)


def is_file(path: LocalPath) -> bool:
    """Whether there is a file."""
    return _native.is_file(path)


def is_directory(path: LocalPath) -> bool:
    """Whether there is a directory."""
    return _native.is_directory(path)


def list_directory(path: LocalPath) -> list[Path]:
    """Lists the paths in a directory, sorted; empty if it does not exist."""
    return sorted(_native.list_directory(path))
