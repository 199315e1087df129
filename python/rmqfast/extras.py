"""Libraries that extras bring: one that is not installed is told with what installs it, one that is broken as it is."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from rmqfast.errors import MissingExtraError

__all__ = ["imported", "is_missing"]


def imported(module: str, extra: str, *, library: str | None = None) -> Any:
    """A library that an extra brings.

    Args:
        module: Its name.
        extra: The extra.
        library: What it is called where that is not the module's name.

    Raises:
        MissingExtraError: It is not installed.
        ImportError: It is installed, and cannot be imported: as it was raised.

    Example:
        >>> imported("pyarrow", "arrow").__name__
        'pyarrow'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if not is_missing(error, module):
            raise
        text = f"{library or module} is needed for this: pip install 'rmqfast[{extra}]'"
        raise MissingExtraError(text, name=module.partition(".")[0]) from None


def is_missing(error: ImportError, *modules: str) -> bool:
    """Whether one of these libraries is not installed: not where a part of it, or what it needs, cannot be imported."""
    names = {name for module in modules for name in (module, module.partition(".")[0])}
    return isinstance(error, ModuleNotFoundError) and error.name in names
