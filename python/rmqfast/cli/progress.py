"""A progress bar on standard error, if standard error is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """Yields a function that moves a progress bar; its arguments are done and total. `None` without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    from rmqfast.cli.screen import console

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(sys.stderr), transient=True) as progress:
        task = progress.add_task(title, total=None)

        def advance(completed: int, total: int) -> None:
            progress.update(task, completed=completed, total=total or None)

        yield advance
