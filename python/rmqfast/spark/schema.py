"""The row as Spark types: every column nullable, timestamps in microseconds, as Spark takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rmqfast._native import check_agreed, columns_of_schema, spark_row

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

__all__ = ["agree_on_columns", "columns_of", "row_schema"]


def row_schema(columns: Sequence[str] | None = None) -> StructType:
    """The Spark schema of the row, or of some of its columns.

    Args:
        columns: Names, in the order that the schema shall have; None is the whole row.

    Raises:
        UnknownColumnError: A column that the row does not have.

    Example:
        >>> row_schema(["queue_offset", "tags"]).simpleString()
        'struct<queue_offset:bigint,tags:string>'
    """
    from pyspark.sql.types import StructField, StructType

    types = _spark_types()
    # all nullable: PySpark 4.2 compares a batch's schema with this one, field by field
    return StructType([StructField(name, types[kind]) for name, kind in spark_row(columns)])


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
    """
    fields = [(field.name, field.dataType.simpleString(), field.nullable) for field in schema.fields]
    return tuple(columns_of_schema(fields))


def agree_on_columns(wanted: Sequence[str] | None, columns: Sequence[str]) -> Sequence[str]:
    """The columns of a schema, where the option `columns` does not say others.

    Args:
        wanted: What the option says.
        columns: Those of the schema.

    Raises:
        ArgumentError: They differ.

    Example:
        >>> agree_on_columns(None, ["tags"])
        ['tags']
    """
    check_agreed(wanted, columns)
    return columns


def _spark_types() -> dict[str, DataType]:
    from pyspark.sql.types import BinaryType, IntegerType, LongType, MapType, StringType, TimestampType

    text = StringType()
    kinds: tuple[DataType, ...] = (text, IntegerType(), LongType(), BinaryType(), TimestampType(), MapType(text, text))
    return {kind.simpleString(): kind for kind in kinds}
