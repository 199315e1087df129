"""A directory of files, on this machine or at a URL of an object store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol


class Directory(Protocol):
    """A directory. All paths are relative to it, with `/` between their names."""

    @property
    def name(self) -> str:
        """The directory's place, for errors."""
        ...

    def names(self) -> set[str]:
        """Returns the names of the files and directories in it. Empty if it does not exist."""
        ...

    def files(self, path: str) -> set[str]:
        """Returns the paths of all files below a directory, relative to that directory. Empty if it does not exist."""
        ...

    def read(self, path: str) -> bytes | None:
        """Returns the bytes of a file. None if it does not exist."""
        ...

    def create(self, path: str) -> Any:
        """Creates a file. Returns it as an open `pyarrow.NativeFile`."""
        ...

    def flush(self, paths: Iterable[str]) -> None:
        """Makes files outlast a loss of power."""
        ...

    def replace(self, path: str, data: bytes) -> None:
        """Writes a file, all of it or nothing, and flushes it."""
        ...

    def move_out(self, source: str, paths: Sequence[str]) -> None:
        """Moves files of a directory in it to the same paths in itself, and flushes them. `source` may keep copies."""
        ...

    def remove_file(self, path: str) -> None:
        """Removes a file, if it exists."""
        ...

    def remove_directory(self, path: str) -> None:
        """Removes a directory and all files below it, if it exists."""
        ...
