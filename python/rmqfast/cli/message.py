"""Writes messages in full, with all columns, all properties and the whole body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rmqfast.cells import one_line, size_text, table_cell
from rmqfast.cli.output import Form, write, write_facts
from rmqfast.message import MessageExt
from rmqfast.store import COLUMNS

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
