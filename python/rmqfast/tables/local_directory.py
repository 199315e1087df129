"""A directory on this machine, locked against other processes."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from rmqfast.errors import StoreBusyError
from rmqfast.paths import exists, list_directory
from rmqfast.system import owned_directory, sync_directory, sync_file


@contextmanager
def lock_directory(path: Path, lock: str) -> Iterator[LocalDirectory]:
    """Yields a directory, locked by a directory in it. Creates both, and removes them at the end if they are empty."""
    own = path / lock
    missing = [parent for parent in (path, *path.parents) if not exists(parent)]
    own.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(owned_directory(own))
        except (BlockingIOError, FileNotFoundError):
            error = StoreBusyError(f"{path}: another process writes to it")
            error.add_note("wait until it has ended, or write elsewhere")
            raise error from None
        try:
            yield LocalDirectory(path)
        finally:
            with suppress(OSError):
                # fails at the first directory that has something to keep
                for directory in (own, *missing):
                    directory.rmdir()


class LocalDirectory:
    """A directory on this machine."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name: str = str(path)

    def names(self) -> set[str]:
        return {each.name for each in list_directory(self._path)}

    def files(self, path: str) -> set[str]:
        root = self._path / path
        return {each.relative_to(root).as_posix() for each in root.rglob("*") if each.is_file()}

    def read(self, path: str) -> bytes | None:
        try:
            return (self._path / path).read_bytes()
        except FileNotFoundError:
            return None

    def create(self, path: str) -> Any:
        import pyarrow as pa

        file = self._path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        return pa.OSFile(str(file), "wb")

    def flush(self, paths: Iterable[str]) -> None:
        for path in paths:
            with (self._path / path).open("rb") as file:
                sync_file(file.fileno())

    def replace(self, path: str, data: bytes) -> None:
        partial = f"{path}.tmp"
        (self._path / partial).write_bytes(data)
        self.flush([partial])
        (self._path / partial).replace(self._path / path)
        sync_directory((self._path / path).parent)

    def move_out(self, source: str, paths: Sequence[str]) -> None:
        changed = set()
        for path in paths:
            place = self._path / path
            place.parent.mkdir(parents=True, exist_ok=True)
            (self._path / source / path).replace(place)
            changed |= {place.parent, *place.parent.parents}
        for directory in changed:
            if directory.is_relative_to(self._path):
                sync_directory(directory)

    def remove_file(self, path: str) -> None:
        (self._path / path).unlink(missing_ok=True)

    def remove_directory(self, path: str) -> None:
        shutil.rmtree(self._path / path, ignore_errors=True)
