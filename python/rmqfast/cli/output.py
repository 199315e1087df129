"""Rows in the form that `-o` asks for, written as they come: what is kept in memory is one chunk of them."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import chain
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rmqfast.cli.cells import csv_cell, one_line, table_cell
from rmqfast.store.json_lines import json_lines, json_text

__all__ = ["Form", "Row", "console", "say", "write", "write_facts"]

Row = Sequence[object]
Chunks = Iterable[Sequence[Row]]

NARROWEST = {"topic": 16, "tags": 8, "keys": 16}  # later rows may be longer than those that decide
WIDEST = {"body": 60, "properties": 60, "reason": 120, "file": 120}
WIDE = 40
TABLE_ROWS = 500  # lines that share their widths


class Screen(Console):
    """A console that leaves a closed pipe to the root of the command line."""

    def on_broken_pipe(self) -> None:
        """Goes on with the error at hand; rich would end the process with 1."""
        raise  # noqa: PLE0704  (called while the error is handled)


class Form(StrEnum):
    """What `-o` may say."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"


def write(form: Form, columns: Sequence[str], chunks: Chunks) -> None:
    """Writes rows to standard output.

    Args:
        form: Table, JSON (an array), JSON lines or CSV.
        columns: Names of the columns.
        chunks: Rows, some at a time; each is written before the next is asked for.
    """
    WRITERS[form](sys.stdout, columns, chunks)
    sys.stdout.flush()


def write_facts(form: Form, facts: Mapping[str, object]) -> None:
    """Writes one record: in a table a line for each fact, else a row."""
    if form is not Form.TABLE:
        write(form, list(facts), [[list(facts.values())]])
        return
    grid = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        grid.add_row(Text(name.replace("_", " "), style="bold"), Text(table_cell(name, value)))
    console().print(grid)


def console(stream: TextIO | None = None) -> Console:
    """A console for standard output, or another stream; without a terminal no line is cut for one."""
    stream = stream or sys.stdout
    width = None if stream.isatty() else 1000
    plain = "NO_COLOR" in os.environ or not stream.isatty()
    return Screen(file=stream, width=width, color_system=None if plain else "auto", highlight=False, markup=False)


def say(text: str) -> None:
    """Writes a line to standard error."""
    print(one_line(text), file=sys.stderr)


def _write_json(stream: TextIO, columns: Sequence[str], chunks: Chunks) -> None:
    stream.write("[")
    separator = "\n"
    for row in chain.from_iterable(chunks):
        stream.write(separator + json_text(dict(zip(columns, row, strict=True))))
        separator = ",\n"
    stream.write("\n]\n")


def _write_json_lines(stream: TextIO, columns: Sequence[str], chunks: Chunks) -> None:
    stream.writelines(json_lines(columns, rows) for rows in chunks)


def _write_csv(stream: TextIO, columns: Sequence[str], chunks: Chunks) -> None:
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    for rows in chunks:
        writer.writerows([csv_cell(value) for value in row] for row in rows)


def _write_table(stream: TextIO, columns: Sequence[str], chunks: Chunks) -> None:
    """The first rows decide the widths, so that the table can begin before the last row is known."""
    screen = console(stream)
    widths: list[int] = []
    for rows in _cut(chunks, TABLE_ROWS):
        cells = [[table_cell(column, value) for column, value in zip(columns, row, strict=True)] for row in rows]
        first = not widths
        widths = widths or _widths(columns, cells)
        screen.print(_table(columns, cells, widths, header=first))
    if not widths:
        screen.print(_table(columns, [], _widths(columns, []), header=True))


def _cut(chunks: Chunks, rows: int) -> Iterable[Sequence[Row]]:
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


WRITERS: dict[Form, Callable[[TextIO, Sequence[str], Chunks], None]] = {
    Form.TABLE: _write_table,
    Form.JSON: _write_json,
    Form.JSONL: _write_json_lines,
    Form.CSV: _write_csv,
}
