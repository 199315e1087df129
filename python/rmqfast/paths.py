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
    """Returns the local path of a user's argument, which may be a `file:` URL.

    Args:
        given: The path. A name that begins as a URL does, as `s3:/x`, is `./s3:/x`.
        name: What the error calls it.

    Raises:
        ArgumentError: An empty text, which would be the current directory, or the URL of another system.

    Example:
        >>> local_path("file:///data/store", "path")
        PosixPath('/data/store')
        >>> local_path("", "path")
        Traceback (most recent call last):
        rmqfast.errors.ArgumentError: path: expected a path (. is the current directory), got ''
    """
    return _native.local_path(name, given)


def exists(path: LocalPath) -> bool:
    """Whether the name exists, even as a link to nothing.

    Raises:
        StoreIOError: It cannot be looked at.
    """
    return _native.path_exists(path)


def is_file(path: LocalPath) -> bool:
    """Whether there is a file.

    Raises:
        StoreIOError: It cannot be looked at.
        CorruptError: A link that leads nowhere.
    """
    return _native.is_file(path)


def is_directory(path: LocalPath) -> bool:
    """Whether there is a directory.

    Raises:
        StoreIOError: It cannot be looked at.
        CorruptError: A link that leads nowhere.
    """
    return _native.is_directory(path)


def list_directory(path: LocalPath) -> list[Path]:
    """Lists the paths in a directory, sorted; empty if it does not exist.

    Raises:
        StoreIOError: It cannot be looked at.
        CorruptError: A link that leads nowhere.
    """
    return sorted(_native.list_directory(path))
