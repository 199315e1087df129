"""Tables and facts for people. Headers are bold on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rmqfast.cells import table_cell

Row = Sequence[object]

#: Minimum widths of columns, since later rows may be longer than those that set the widths.
NARROWEST = {"topic": 16, "tags": 8, "keys": 16}
#: Columns cut to a preview on a terminal, unless explicitly requested.
PREVIEWED = frozenset({"body", "properties"})
PREVIEW = 40
GAP = "  "


class Screen(Console):
    """A console that lets closed pipes be handled at the root of the command line."""

    def on_broken_pipe(self) -> None:
        """Raises the error again. Without this, rich would end the process with exit code 1."""
        raise  # noqa: PLE0704  (called while the error is handled)


def console(stream: TextIO | None = None) -> Console:
    """Returns a console for a stream. Long lines are only cut on a terminal."""
    stream = stream or sys.stdout
    # Without a terminal, rich would cut lines at 80 columns.
    width = None if stream.isatty() else 1000
    # Users set NO_COLOR to get no colours: https://no-color.org
    plain = "NO_COLOR" in os.environ or not stream.isatty()
    return Screen(file=stream, width=width, color_system=None if plain else "auto", highlight=False, markup=False)


def print_facts(facts: Mapping[str, object]) -> None:
    grid = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        grid.add_row(Text(name.replace("_", " "), style="bold"), Text(table_cell(name, value)))
    console().print(grid)


def print_table(
    stream: TextIO, columns: Sequence[str], chunks: Iterable[Sequence[Row]], *, whole: bool = False
) -> None:
    """Prints one line per row. The first rows determine the widths, since later rows are not known yet.

    A longer value is not cut, but shifts the rest of its line. Only bodies and properties that were not requested are
    cut at the width of the terminal.
    """
    whole = whole or not stream.isatty()
    screen = console(stream)
    widths: list[int] = []
    for rows in chunks:
        cells = [
            [table_cell(column, value, whole=whole) for column, value in zip(columns, row, strict=True)] for row in rows
        ]
        if not widths:
            widths = _widths(columns, cells)
            _print_header(screen, columns, widths)
        previews = {} if whole else _previews(columns, widths, screen.width)
        stream.writelines(_line(row, widths, previews) for row in cells)
        # Show each chunk at once, since the next one may take long.
        stream.flush()
    if not widths:
        _print_header(screen, columns, _widths(columns, []))


def _widths(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> list[int]:
    by_column = zip(*cells, strict=True) if cells else [()] * len(columns)
    most = [
        max(NARROWEST.get(name, 0), *map(cell_len, (name, *values)))
        for name, values in zip(columns, by_column, strict=True)
    ]
    return [min(width, PREVIEW) if name in PREVIEWED else width for name, width in zip(columns, most, strict=True)]


def _previews(columns: Sequence[str], widths: Sequence[int], width: int) -> dict[int, int]:
    """Returns the widths of the columns that are cut. The last column gets the remaining width of the line."""
    remaining = width - sum(widths[:-1]) - len(GAP) * (len(widths) - 1)
    last = len(columns) - 1
    return {
        index: max(remaining, PREVIEW) if index == last else PREVIEW
        for index, name in enumerate(columns)
        if name in PREVIEWED
    }


def _print_header(screen: Console, columns: Sequence[str], widths: Sequence[int]) -> None:
    header = Text(_line(columns, widths, {}).rstrip("\n"), style="bold")
    screen.print(header, no_wrap=True, overflow="ignore", crop=False)


def _line(cells: Sequence[str], widths: Sequence[int], previews: Mapping[int, int]) -> str:
    visible = [
        set_cell_size(cell, previews[index] - 1) + "…" if cell_len(cell) > previews.get(index, cell_len(cell)) else cell
        for index, cell in enumerate(cells)
    ]
    padded = [cell + " " * (width - cell_len(cell)) for cell, width in zip(visible, widths, strict=True)]
    return GAP.join(padded).rstrip() + "\n"
