"""The commands of the command line, as their `--help` says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer
from typer.testing import CliRunner

from rmqfast.cli.app import app

_HEAD = """# Commands

What `--help` says of each command. [The command line](../cli.md) explains them: clusters and accounts, output,
exit codes, examples.
"""


def all_commands() -> str:
    """A section for each command."""
    return "\n".join([_HEAD, *(_section(words) for words in _paths(typer.main.get_command(app), []))])


def _section(words: list[str]) -> str:
    runner = CliRunner(env={"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1"})
    done = runner.invoke(app, [*words, "--help"], prog_name="rmqfast", terminal_width=100)
    if done.exit_code:
        raise RuntimeError(done.output)
    text = "\n".join(line.rstrip() for line in done.output.strip().splitlines())
    return f"{'##' if len(words) < 2 else '###'} {' '.join(['rmqfast', *words])}\n\n```text\n{text}\n```\n"


def _paths(command: Any, words: list[str]) -> Iterator[list[str]]:
    """The words of a command and of those below it."""
    yield words
    for name, below in sorted(getattr(command, "commands", {}).items()):
        if not below.hidden:
            yield from _paths(below, [*words, name])
