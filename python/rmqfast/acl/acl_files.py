"""Reads and writes the files with accounts and white lists: `conf/plain_acl.yml` and all files in `conf/acl`.

Source: `PlainPermissionManager.getAllAclFiles`, `PlainPermissionManager.load`.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path
from typing import Final

from rmqfast.acl import yaml_text
from rmqfast.errors import ArgumentError, StoreIOError
from rmqfast.paths import is_file, local_path
from rmqfast.system import set_mode, sync_directory, sync_file


class AclFiles:
    """The ACL files below one `ROCKETMQ_HOME`. New accounts are added to `default_path`, `conf/plain_acl.yml`."""

    def __init__(self, home: str | os.PathLike[str]) -> None:
        conf = local_path(home, "rocketmqHome").absolute() / "conf"
        self.default_path: Final = conf / "plain_acl.yml"
        self._folder = conf / "acl"

    def paths(self) -> list[Path]:
        """Returns the ACL files that exist. If two files have the same account, the first file counts.

        Raises:
            StoreIOError: A directory or file cannot be examined, which must not look like a missing file.
        """
        extra = [
            Path(folder, name)
            # Sorted, so that the same file always comes first.
            for folder, _, names in sorted(os.walk(self._folder, onerror=_refuse))
            for name in sorted(names)
            if name.endswith((".yml", ".yaml"))
        ]
        return [path for path in [*extra, self.default_path] if is_file(path)]

    def read(self) -> dict[Path, bytes]:
        """Returns the files' content, of each at most one byte over the limit. Raises `ArgumentError` on I/O errors."""
        return {path: _read(path) for path in self.paths()}

    def write(self, path: Path, data: bytes) -> None:
        """Replaces a file atomically. Raises `ArgumentError` if the operating system refuses."""
        try:
            _replace(path, data)
        except OSError as error:
            raise ArgumentError(f"{path}: {error.strerror}") from error


def _refuse(error: OSError) -> None:
    # A missing folder has no files.
    if not isinstance(error, FileNotFoundError):
        raise StoreIOError(error.errno, str(error.strerror).lower(), str(error.filename)) from error


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            # One byte more than allowed, so that the parser refuses a larger file.
            return file.read(yaml_text.MAX_BYTES + 1)
    except OSError as error:
        raise ArgumentError(f"{path}: {error.strerror}") from error


def _replace(path: Path, data: bytes) -> None:
    # mkstemp makes the file readable only by its owner, since it holds secrets
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
            file.write(data)
            file.flush()
            with contextlib.suppress(FileNotFoundError):
                set_mode(descriptor, stat.S_IMODE(path.stat().st_mode))
            sync_file(descriptor)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_directory(path.parent)
