"""Imports optional libraries. If one is missing, the error shows the command that installs it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from rmqfast.errors import MissingExtraError

__all__ = ["import_extra", "is_missing"]


def import_extra(module: str, extra: str, *, library: str | None = None) -> Any:
    """Returns a library that an optional extra installs. Raises `MissingExtraError` if it is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        # the library is installed, but one of its own imports fails
        if not is_missing(error, module):
            raise
        text = f"{library or module} is needed for this: pip install 'rmqfast[{extra}]'"
        raise MissingExtraError(text, name=module.partition(".")[0]) from None


def is_missing(error: ImportError, *modules: str) -> bool:
    """Whether an error means that one of the given libraries is not installed. False if it is installed but broken."""
    names = {name for module in modules for name in (module, module.partition(".")[0])}
    return isinstance(error, ModuleNotFoundError) and error.name in names
