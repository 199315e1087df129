"""The command line. Servers run without third-party packages; other commands need the extra `cli`."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from contextlib import suppress
from typing import TextIO

from rmqfast import __version__
from rmqfast.errors import ExpressionWarning

__all__ = ["main"]

NEEDED = ("typer", "rich")
_SHOW = warnings.showwarning
#: Environment variable by which a shell requests completions.
COMPLETE = "_RMQFAST_COMPLETE"


def main() -> None:
    """Runs the command line and ends the process.

    Raises:
        SystemExit: 0 success, 1 a problem was found, 2 usage, 3 unreachable or not readable, 130 interrupted.

    Example:
        >>> from rmqfast.cli import main
        >>> callable(main)
        True
    """
    from rmqfast.cli.streams import standard_streams

    with standard_streams():
        _run(sys.argv[1:])


def _run(words: list[str]) -> None:
    if words == ["--version"]:  # before any import that it does not need
        print(f"rmqfast {__version__}")
        return
    if COMPLETE in os.environ:
        _complete()
        return
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    # Python's own form shows a line of source code, which means nothing to a user.
    warnings.showwarning = _show_warning
    try:
        import rich  # noqa: F401  # only this part of rich is imported before a table is shown

        from rmqfast.cli.app import app
    except ImportError as error:
        from rmqfast.extras import is_missing

        if not is_missing(error, *NEEDED):
            raise
        _without_extra(words, str(error.name))
        return
    app(prog_name="rmqfast")


def _show_warning(  # noqa: PLR0917 - as `warnings.showwarning`
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Shows an `ExpressionWarning` as one line, without the source code that caused it."""
    if issubclass(category, ExpressionWarning):
        print(f"warning: {message}", file=sys.stderr)
    else:
        _SHOW(message, category, filename, lineno, file, line)


def _complete() -> None:
    """Answers a shell's request for completion. Logs nothing."""
    # Without the extra, there is nothing to complete.
    with suppress(ImportError):
        from rmqfast.cli.app import app
        from rmqfast.cli.completion import join_split_words

        join_split_words(os.environ)
        app(prog_name="rmqfast")


def _without_extra(words: list[str], missing: str) -> None:
    """Runs a command that needs no third-party package. Ends all other commands with exit code 3."""
    from rmqfast.cli import plain

    if words[:1] and words[0] not in {*plain.COMMANDS, "-h", "--help", "--version"}:
        print(f"the command line needs {missing}: pip install 'rmqfast[cli]'", file=sys.stderr)
        raise SystemExit(3)
    # Without words, show the help, as with Typer.
    plain.run(words or ["--help"])
