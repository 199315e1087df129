"""Writes rows in the form that `-o` selects, chunk by chunk."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TextIO

from rmqfast.cells import escape, one_line, size_text, table_cell
from rmqfast.cli.streams import data_output
from rmqfast.message import MessageExt
from rmqfast.store import COLUMNS
from rmqfast.store.decode import VALUE, is_decoded
from rmqfast.store.json_lines import base64_text, json_lines, json_text

# A spreadsheet takes a cell with such a beginning for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_cell(value: object) -> object:
    """Returns a value for CSV. An apostrophe protects text that a spreadsheet would run; null becomes empty."""
    if isinstance(value, bytes | Mapping):
        value = base64_text(value) if isinstance(value, bytes) else json_text(value)
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return value


def screen_cell(value: object) -> object:
    """Returns a value for a terminal: `csv_cell`, with control and format characters escaped."""
    cell = csv_cell(value)
    return escape(cell) if isinstance(cell, str) else cell


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


def with_value(columns: Sequence[str]) -> Sequence[str]:
    """Returns the columns with the decoded bodies behind them. In a table they stand in place of the bodies."""
    shown = [name for name in columns if name != "body"] if tuple(columns) == TABLE_COLUMNS else columns
    return (*shown, VALUE)


def shown_names(columns: Sequence[str]) -> Sequence[str]:
    """Returns the names of a scan's columns: `value` stands last, and once for all its fields."""
    plain = [name for name in columns if not is_decoded(name)]
    return plain if len(plain) == len(columns) else [*plain, VALUE]


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


# Bytes per line of hexadecimal digits.
LINE_BYTES = 32


def write_messages(form: Form, messages: Sequence[MessageExt]) -> None:
    """Writes messages in full. As a table, each column is on its own line, otherwise each message is a row."""
    if form is not Form.TABLE:
        write(form, COLUMNS, [[_row(message) for message in messages]])
        return
    for number, message in enumerate(messages):
        if number:
            print()
        _write_in_full(message)


def _row(message: MessageExt) -> list[object]:
    values = [getattr(message, column) for column in COLUMNS]
    return [dict(value) if isinstance(value, Mapping) else value for value in values]


def _write_in_full(message: MessageExt) -> None:
    plain = [column for column in COLUMNS if column not in {"body", "properties"}]
    write_facts(Form.TABLE, {column: getattr(message, column) for column in plain})
    print("properties")
    for name, value in message.properties.items():
        print(f"  {table_cell('name', name)} = {table_cell('value', value)}")
    if message.body is None:
        print("body cannot be decompressed")
        return
    print(f"body, {size_text(len(message.body))}")
    for line in _lines(message.body):
        print(f"  {line}")


def _lines(body: bytes) -> list[str]:
    try:
        return [one_line(line) for line in body.decode("utf-8").splitlines()]
    except UnicodeDecodeError:
        # A binary body is shown as hexadecimal digits.
        return [body[start : start + LINE_BYTES].hex(" ", 4) for start in range(0, len(body), LINE_BYTES)]
