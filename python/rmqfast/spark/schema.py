"""The columns of a row as Spark types. Every column is nullable, and timestamps have microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rmqfast._native import check_agreed, columns_of_schema, spark_row

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


def row_schema(columns: Sequence[str] | None = None) -> StructType:
    """Returns the Spark schema of the row, or of the given columns in their order."""
    from pyspark.sql.types import StructField, StructType

    types = _spark_types()
    # All nullable, since PySpark 4.2 compares a batch's schema with this one field by field.
    return StructType([StructField(name, types[kind]) for name, kind in spark_row(columns)])


def columns_of(schema: StructType) -> tuple[str, ...]:
    """Returns the columns of a user's schema. Only the columns in the schema are read; their order is free.

    Raises `UnknownColumnError` for a column that the row lacks, and `ArgumentError` for another type, NOT NULL or an
    empty schema.
    """
    fields = [(field.name, field.dataType.simpleString(), field.nullable) for field in schema.fields]
    return tuple(columns_of_schema(fields))


def agree_on_columns(wanted: Sequence[str] | None, columns: Sequence[str]) -> Sequence[str]:
    """Returns the columns of a schema. Raises `ArgumentError` if the option `columns` names other columns."""
    check_agreed(wanted, columns)
    return columns


def _spark_types() -> dict[str, DataType]:
    from pyspark.sql.types import BinaryType, IntegerType, LongType, MapType, StringType, TimestampType

    text = StringType()
    kinds: tuple[DataType, ...] = (text, IntegerType(), LongType(), BinaryType(), TimestampType(), MapType(text, text))
    return {kind.simpleString(): kind for kind in kinds}
