"""Writes rows in the form that `-o` selects, chunk by chunk."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TextIO

from rmqfast.cells import one_line
from rmqfast.cli.csv_cells import csv_cell, screen_cell
from rmqfast.cli.streams import data_output
from rmqfast.store import COLUMNS, Scan
from rmqfast.store.json_lines import json_lines, json_text, plain_rows

Row = Sequence[object]
Chunks = Iterable[Sequence[Row]]


class Form(StrEnum):
    """The values of `-o`."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"


def write(form: Form, columns: Sequence[str], chunks: Chunks, *, whole: bool = False) -> None:
    """Writes rows. Each chunk is written before the next one is read. `whole` shows whole bodies on a terminal."""
    if form is Form.TABLE:
        from rmqfast.cli import screen  # imported here, since other forms start faster without rich

        screen.print_table(sys.stdout, columns, chunks, whole=whole)
    else:
        WRITERS[form](data_output(), columns, chunks)
    sys.stdout.flush()


def write_facts(form: Form, facts: Mapping[str, object]) -> None:
    """Writes one record. A table has a line for each fact; other forms have one row."""
    if form is not Form.TABLE:
        write(form, list(facts), [[list(facts.values())]])
        return
    # Imported here, since the other forms start faster without rich.
    from rmqfast.cli import screen

    screen.print_facts(facts)


def print_json(value: object) -> None:
    print(json_text(value), file=data_output())


def say(text: str) -> None:
    """Writes a line to standard error."""
    print(one_line(text), file=sys.stderr)


def say_directory(kind: str, directory: str | os.PathLike[str]) -> None:
    """Prints the directory that will be changed, since its path may come from an environment variable."""
    say(f"{kind}: {Path(directory).absolute()}")


def _write_json(stream: TextIO, columns: Sequence[str], chunks: Chunks) -> None:
    # Written row by row, so that large results need little memory.
    stream.write("[")
    separator = "\n"
    for row in chain.from_iterable(chunks):
        stream.write(separator + json_text(dict(zip(columns, row, strict=True))))
        separator = ",\n"
    stream.write("\n]\n")


def _write_json_lines(stream: TextIO, columns: Sequence[str], chunks: Chunks) -> None:
    stream.writelines(json_lines(columns, rows) for rows in chunks)


def _write_csv(stream: TextIO, columns: Sequence[str], chunks: Chunks) -> None:
    # Control characters are kept in files, but escaped on a terminal, where they would move the cursor.
    cell = screen_cell if stream.isatty() else csv_cell
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    for rows in chunks:
        writer.writerows([cell(value) for value in row] for row in rows)


WRITERS: dict[Form, Callable[[TextIO, Sequence[str], Chunks], None]] = {
    Form.JSON: _write_json,
    Form.JSONL: _write_json_lines,
    Form.CSV: _write_csv,
}


TABLE_COLUMNS = ("topic", "queue_id", "queue_offset", "store_timestamp", "tags", "keys", "body")


def chosen_columns(columns: str | None, form: Form) -> Sequence[str]:
    """Returns the columns to show: those that the user named, the default columns of a table, or all columns."""
    if columns is not None:
        return [name.strip() for name in columns.split(",")]
    return TABLE_COLUMNS if form is Form.TABLE else COLUMNS


def scan_rows(scan: Scan, limit: int | None) -> Iterator[Sequence[Row]]:
    remaining = limit
    # With limit 0, do not even read the first batch.
    for rows in plain_rows(scan) if remaining != 0 else ():
        yield rows if remaining is None else rows[:remaining]
        if remaining is not None and (remaining := max(0, remaining - len(rows))) == 0:
            return
