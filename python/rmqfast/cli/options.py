"""Options of commands, declared once for Typer and for the standard library's parser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rmqfast.errors import ArgumentError
from rmqfast.paths import exists, is_directory, is_file, local_path

__all__ = ["Option"]

#: The name of the option itself is said by the parser.
NAME = "path"


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """An option of a command, as an annotation of its parameter, which has type and default.

    Attributes:
        names: As `("-c", "--config")`; by default that of the parameter.
        help: Help text.
        min: Smallest number.
        max: Largest number.
        is_file: The path must be a file.
        is_directory: The path must be a directory, or not exist.
    """

    help: str
    names: tuple[str, ...] = ()
    min: int | None = None
    max: int | None = None
    is_file: bool = False
    is_directory: bool = False

    def path(self, text: str) -> Path:
        """Parses a path.

        Raises:
            ArgumentError: It is no local path, or not of the option's kind.
            StoreIOError: It cannot be examined.
        """
        path = local_path(text, NAME)
        if self.is_file and not is_file(path):
            raise ArgumentError(f"{NAME}: expected a file, got {text}")
        if self.is_directory and exists(path) and not is_directory(path):
            raise ArgumentError(f"{NAME}: expected a directory, got {text}")
        return path
