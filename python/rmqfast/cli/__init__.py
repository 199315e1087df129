"""The command line. The one module of it that can be imported without the extra `cli`, to say that it is missing."""

from __future__ import annotations

import logging
import sys

from rmqfast import __version__

__all__ = ["main"]

NEEDED = ("typer", "rich")


def main() -> None:
    """Runs the command line and ends the process.

    Raises:
        SystemExit: 0 fine, 1 a problem was found, 2 usage, 3 cannot be reached or opened, 130 interrupted.

    Example:
        >>> from rmqfast.cli import main
        >>> callable(main)
        True
    """
    try:
        import rich  # noqa: F401 - of it only this is imported before a table is shown

        from rmqfast.cli.app import app
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in NEEDED:
            raise
        if sys.argv[1:] == ["--version"]:
            print(f"rmqfast {__version__}")
            return
        print(f"the command line needs {error.name}: pip install 'rmqfast[cli]'", file=sys.stderr)
        raise SystemExit(3) from None
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    app(prog_name="rmqfast")
