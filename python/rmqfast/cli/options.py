"""What a command's option is called and takes, said once: for Typer, and for the parser that needs no library."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Option"]


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
