"""Which columns of a DataFrame a sink takes, and of which types."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rmqfast.errors import ArgumentError, UnknownColumnError
from rmqfast.store import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["SINK_COLUMNS", "sink_columns"]

_INTEGERS = ("int", "bigint", "smallint", "tinyint")
#: By name: the types that are taken, as Spark writes them.
SINK_COLUMNS: dict[str, tuple[str, ...]] = {
    "body": ("binary", "string"),
    "tags": ("string",),
    "keys": ("string", "array<string>"),
    "properties": ("map<string,string>",),
    "topic": ("string",),
    "broker_name": ("string",),
    "queue_id": _INTEGERS,
    "delay_level": _INTEGERS,
    "flag": _INTEGERS,
}


def sink_columns(schema: StructType, topic: str | None) -> Sequence[str]:
    """The columns that are sent, in the order of the schema.

    What a broker gives to each message itself, as `queue_offset`, may be there and is left out.

    Args:
        schema: The DataFrame's.
        topic: The option: where it is given a column `topic` is left out.

    Raises:
        UnknownColumnError: A column that messages do not have.
        ArgumentError: A column of another type, or twice; no body, or no topic.

    Example:
        >>> from pyspark.sql.types import StructType, StringType, LongType
        >>> sink_columns(StructType().add("body", StringType()).add("queue_offset", LongType()), "orders")
        ['body']

    Source: `DataSource.writer` of PySpark gets the schema before anything is sent.
    """
    for name, count in Counter(schema.fieldNames()).items():
        _check_name(name)
        # Spark allows it, but nobody could say which of both is meant
        if count > 1:
            raise ArgumentError(f"schema: column {name}: expected once, got {count} of that name")
    for column in schema.fields:
        types, got = SINK_COLUMNS.get(column.name, ()), column.dataType.simpleString()
        if types and got not in types:
            raise ArgumentError(f"schema: column {column.name}: expected {' or '.join(types)}, got {got}")
    # what a read gives besides is left out, so that a topic can be copied
    named = [name for name in schema.fieldNames() if name in SINK_COLUMNS]
    if "body" not in named:
        got = ", ".join(schema.fieldNames()) or "none"
        raise ArgumentError(f"schema: column body: expected binary or string, got no such column, only {got}")
    if topic is None and "topic" not in named:
        raise ArgumentError("expected the option topic or a column topic, got neither")
    return [name for name in named if name != "topic" or topic is None]


def _check_name(name: str) -> None:
    # a typing mistake must not lose a column in silence
    if name in SINK_COLUMNS or name in COLUMNS:
        return
    near = difflib.get_close_matches(name.lower(), SINK_COLUMNS, n=3)
    hint = f"did you mean {', '.join(near)}? " if near else ""
    raise UnknownColumnError(f"unknown column {name!r}; {hint}the columns of a sink are {', '.join(SINK_COLUMNS)}")
