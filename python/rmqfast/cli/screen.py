"""What is shown with rich: tables, whose first rows decide the widths."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rmqfast.cli.cells import table_cell

__all__ = ["console", "print_facts", "print_table"]

Row = Sequence[object]

NARROWEST = {"topic": 16, "tags": 8, "keys": 16}  # later rows may be longer than those that decide
WIDEST = {"body": 60, "properties": 60, "reason": 120, "file": 120}
WIDE = 40
TABLE_ROWS = 500  # lines that share their widths


class Screen(Console):
    """A console that leaves a closed pipe to the root of the command line."""

    def on_broken_pipe(self) -> None:
        """Goes on with the error at hand; rich would end the process with 1."""
        raise  # noqa: PLE0704  (called while the error is handled)


def console(stream: TextIO | None = None) -> Console:
    """A console for standard output, or another stream; without a terminal no line is cut for one."""
    stream = stream or sys.stdout
    width = None if stream.isatty() else 1000
    plain = "NO_COLOR" in os.environ or not stream.isatty()
    return Screen(file=stream, width=width, color_system=None if plain else "auto", highlight=False, markup=False)


def print_facts(facts: Mapping[str, object]) -> None:
    """Prints a line for each fact."""
    grid = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        grid.add_row(Text(name.replace("_", " "), style="bold"), Text(table_cell(name, value)))
    console().print(grid)


def print_table(stream: TextIO, columns: Sequence[str], chunks: Iterable[Sequence[Row]]) -> None:
    """Prints rows; the first ones decide the widths, so that the table can begin before the last row is known."""
    screen = console(stream)
    widths: list[int] = []
    for rows in _cut(chunks, TABLE_ROWS):
        cells = [[table_cell(column, value) for column, value in zip(columns, row, strict=True)] for row in rows]
        first = not widths
        widths = widths or _widths(columns, cells)
        screen.print(_table(columns, cells, widths, header=first))
    if not widths:
        screen.print(_table(columns, [], _widths(columns, []), header=True))


def _cut(chunks: Iterable[Sequence[Row]], rows: int) -> Iterable[Sequence[Row]]:
    for chunk in chunks:
        for start in range(0, len(chunk), rows):
            yield chunk[start : start + rows]


def _widths(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> list[int]:
    by_column = zip(*cells, strict=True) if cells else [()] * len(columns)
    return [
        min(max(NARROWEST.get(name, 0), *map(cell_len, (name, *values))), WIDEST.get(name, WIDE))
        for name, values in zip(columns, by_column, strict=True)
    ]


def _table(columns: Sequence[str], cells: Sequence[Sequence[str]], widths: Sequence[int], *, header: bool) -> Table:
    table = Table(box=None, show_header=header, header_style="bold", padding=(0, 2, 0, 0), pad_edge=False)
    for name, width in zip(columns, widths, strict=True):
        table.add_column(name, no_wrap=True, overflow="ellipsis", width=width)
    for row in cells:
        table.add_row(*map(Text, row))
    return table
