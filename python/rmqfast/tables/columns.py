"""Columns of rows and of the table that they go to: rows may have more fields than the table, but no fewer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rmqfast.errors import ArgumentError

if TYPE_CHECKING:
    import pyarrow as pa


def adds_fields(table: str, held: pa.Schema, wanted: pa.Schema) -> bool:
    """Whether rows have fields that a table lacks. `wanted` has the types that the table's format makes of theirs.

    Raises:
        ArgumentError: The table has fields that the rows lack, or fields of another type.
    """
    here, there = dict(_leaves(held)), dict(_leaves(wanted))
    lacking = [path for path in here if path not in there]
    if lacking:
        raise ArgumentError(
            f"{table}: expected rows with all of its fields, got none of {', '.join(lacking)}: "
            "decode with a schema that has them, or write to another table"
        )
    changed = [f"{path} as {there[path]}, got {type_}" for path, type_ in here.items() if there[path] != type_]
    if changed:
        raise ArgumentError(f"{table}: expected {'; '.join(changed)}: write to another table")
    return here.keys() != there.keys()


def _leaves(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    for field in schema:
        yield from _leaves_of(field.name, field.type)


def _leaves_of(path: str, type_: pa.DataType) -> Iterator[tuple[str, str]]:
    """Yields the path and the type of each field that has no fields of its own."""
    import pyarrow as pa

    if pa.types.is_struct(type_):
        for field in type_:
            yield from _leaves_of(f"{path}.{field.name}", field.type)
    elif pa.types.is_map(type_):
        yield from _leaves_of(f"{path}.key", type_.key_type)
        yield from _leaves_of(f"{path}.value", type_.item_type)
    elif pa.types.is_list(type_) or pa.types.is_large_list(type_):
        yield from _leaves_of(f"{path}.element", type_.value_type)
    else:
        yield path, str(type_).removeprefix("large_")
