"""What a command's option is called and takes, said once: for Typer, and for the parser that needs no library."""

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
    """An option of a command, as a note on its parameter; the parameter has its type and its default.

    Attributes:
        names: As `("-c", "--config")`; that of the parameter where there are none.
        help: What it does.
        min: The least number.
        max: The greatest number.
        is_file: A file that is there.
        is_directory: A directory, or what is not there yet.

    Example:
        >>> Option(help="Port of the name server; 0 is any.", min=0, max=65_535).names
        ()
    """

    help: str
    names: tuple[str, ...] = ()
    min: int | None = None
    max: int | None = None
    is_file: bool = False
    is_directory: bool = False

    def path(self, text: str) -> Path:
        """The path that was given.

        Raises:
            ArgumentError: None of this machine, or not what the option takes.
            StoreIOError: It cannot be looked at.
        """
        path = local_path(text, NAME)
        if self.is_file and not is_file(path):
            raise ArgumentError(f"{NAME}: expected a file, got {text}")
        if self.is_directory and exists(path) and not is_directory(path):
            raise ArgumentError(f"{NAME}: expected a directory, got {text}")
        return path
