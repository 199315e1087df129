"""The row as Spark types: every column nullable, timestamps in microseconds, as Spark takes them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rmqfast.errors import ArgumentError, UnknownColumnError
from rmqfast.store import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

__all__ = ["agreed", "columns_of", "row_schema"]

_TYPES = {
    "queue_id": "int",
    "queue_offset": "bigint",
    "physical_offset": "bigint",
    "body": "binary",
    "properties": "map<string,string>",
    "born_timestamp": "timestamp",
    "store_timestamp": "timestamp",
    "flag": "int",
    "sys_flag": "int",
    "reconsume_times": "int",
    "prepared_transaction_offset": "bigint",
    "store_size": "int",
    "body_crc": "int",
}


def row_schema(columns: Sequence[str] | None = None) -> StructType:
    """The Spark schema of the row, or of some of its columns.

    Args:
        columns: Names, in the order that the schema shall have; None is the whole row.

    Raises:
        UnknownColumnError: A column that the row does not have.

    Example:
        >>> row_schema(["queue_offset", "tags"]).simpleString()
        'struct<queue_offset:bigint,tags:string>'

    Source: the row of a scan, `rmqfast.store.COLUMNS`.
    """
    from pyspark.sql.types import StructField, StructType

    types = _spark_types()
    for name in columns or ():
        _check_name(name)
    return StructType([StructField(name, types[_TYPES.get(name, "string")]) for name in columns or COLUMNS])


def columns_of(schema: StructType) -> tuple[str, ...]:
    """The columns that a schema of the user's asks for; they are all that is read.

    Args:
        schema: Columns of the row with their types, in any order.

    Raises:
        UnknownColumnError: A column that the row does not have.
        ArgumentError: A column of another type than the row's, NOT NULL, or none at all.

    Example:
        >>> columns_of(row_schema(["tags", "queue_id"]))
        ('tags', 'queue_id')

    Source: Spark gives the schema of `DataFrameReader.schema` to `DataSource.reader`.
    """
    if not schema.fields:
        raise ArgumentError(f"schema: expected at least one column of {', '.join(COLUMNS)}, got none")
    types = _spark_types()
    for field in schema.fields:
        _check_name(field.name)
        wanted = types[_TYPES.get(field.name, "string")]
        if field.dataType != wanted:
            got = field.dataType.simpleString()
            raise ArgumentError(f"schema: column {field.name}: expected {wanted.simpleString()}, got {got}")
        if not field.nullable:
            raise ArgumentError(f"schema: column {field.name}: expected nullable, as every column is, got NOT NULL")
    return tuple(schema.fieldNames())


def agreed(wanted: Sequence[str] | None, columns: Sequence[str]) -> Sequence[str]:
    """The columns of a schema, where the option `columns` does not say others.

    Args:
        wanted: What the option says.
        columns: Those of the schema.

    Raises:
        ArgumentError: They differ.

    Example:
        >>> agreed(None, ["tags"])
        ['tags']
    """
    if wanted is not None and tuple(columns) != tuple(wanted):
        raise ArgumentError(f"schema: expected the columns of the option columns, {wanted}, got {tuple(columns)}")
    return columns


def _check_name(name: str) -> None:
    if name not in COLUMNS:
        near = difflib.get_close_matches(name.lower(), COLUMNS, n=3)
        hint = f"did you mean {', '.join(near)}? " if near else ""
        raise UnknownColumnError(f"unknown column {name!r}; {hint}the columns are {', '.join(COLUMNS)}")


def _spark_types() -> dict[str, DataType]:
    from pyspark.sql.types import BinaryType, IntegerType, LongType, MapType, StringType, TimestampType

    text = StringType()
    kinds: tuple[DataType, ...] = (text, IntegerType(), LongType(), BinaryType(), TimestampType(), MapType(text, text))
    return {kind.simpleString(): kind for kind in kinds}
