"""Converts data frames and tables of pandas, Polars, pyarrow and others to Arrow record batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, cast

from rmqfast.errors import ArgumentTypeError, UnknownColumnError
from rmqfast.message import Message


class ArrowStream(Protocol):
    """An object with `__arrow_c_stream__`, such as a table, a reader, a data frame or a scan."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class ArrowBatch(Protocol):
    """A record batch, recognised by `__arrow_c_array__`."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...


class LazyRows(Protocol):
    """A lazy frame like that of Polars: `collect` computes its rows."""

    def collect(self) -> Any: ...

    def collect_schema(self) -> Any: ...


class Scannable(Protocol):
    """An object like a dataset of pyarrow, which creates a scanner."""

    def scanner(self) -> Any: ...


class Readable(Protocol):
    """An object like a scanner of pyarrow, which creates a reader of record batches."""

    def to_reader(self) -> Any: ...


Frame = ArrowStream | ArrowBatch | LazyRows | Scannable | Readable
"""Rows of a data frame, a table, a query: all that gives Arrow record batches."""


def arrow_rows(source: object) -> Any | None:
    """Returns the record batches of a frame. None if the object is no frame."""
    rows: Any = source
    if hasattr(rows, "collect") and hasattr(rows, "collect_schema") and not hasattr(rows, "__arrow_c_stream__"):
        # Polars' lazy frame
        return rows.collect()
    # a dataset of pyarrow
    if hasattr(rows, "scanner"):
        rows = rows.scanner()
    # a scanner of pyarrow
    if hasattr(rows, "to_reader") and not hasattr(rows, "__arrow_c_stream__"):
        rows = rows.to_reader()
    return rows if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__") else None


def messages_of(given: Iterable[Message] | Frame) -> list[Message]:
    """Returns `Message` objects as a list. Raises an error for any other object."""
    if isinstance(given, Message):
        raise ArgumentTypeError("messages: expected several, got one Message: write [message], or append it")
    if isinstance(given, dict):
        raise ArgumentTypeError("messages: expected messages or a frame, got a dict: write pyarrow.table(columns)")
    try:
        messages = list(cast("Iterable[Any]", given))
    except TypeError:
        got = type(given).__name__
        text = f"messages: expected messages, or what has __arrow_c_stream__ as frames and tables do, got a {got}"
        raise ArgumentTypeError(text) from None
    for row, message in enumerate(messages):
        if isinstance(message, Message):
            continue
        if isinstance(message, dict):
            got = f"message {row}: expected a Message, got a dict"
            raise ArgumentTypeError(f"{got}: write Message(**row), or pyarrow.Table.from_pylist(rows) for all of them")
        if arrow_rows(message) is not None:
            got = f"message {row}: expected a Message, got a {type(message).__name__}"
            raise ArgumentTypeError(
                f"{got}: write pyarrow.Table.from_batches(batches), or hand over one after the other"
            )
    return messages


@contextmanager
def index_explained(source: object) -> Iterator[None]:
    try:
        yield
    except UnknownColumnError as error:
        names = getattr(getattr(source, "index", None), "names", ())
        for name in names:
            if name is not None and f"'{name}'" in str(error):
                text = f"{error}; {name!r} is the index of the frame: write frame.reset_index(drop=True)"
                raise UnknownColumnError(text) from None
        raise
