"""Options of commands. Each is declared once and serves Typer and argparse."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rmqfast.errors import ArgumentError
from rmqfast.paths import exists, is_directory, is_file, local_path

#: Name of a path in errors; the parser adds the option's name.
NAME = "path"


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """An option of a command. It annotates the parameter, which has the type and the default.

    `names` are for instance `("-c", "--config")`; by default, the parameter's name. `min` and `max` limit a number.
    `is_file` requires an existing file, `is_directory` a directory or a missing path.
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
            ArgumentError: It is not a local path, or not of the required kind.
            StoreIOError: It cannot be examined.
        """
        path = local_path(text, NAME)
        if self.is_file and not is_file(path):
            raise ArgumentError(f"{NAME}: expected a file, got {text}")
        if self.is_directory and exists(path) and not is_directory(path):
            raise ArgumentError(f"{NAME}: expected a directory, got {text}")
        return path
