"""The columns of a row as Spark types. Every column is nullable, and timestamps have microseconds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rmqfast._native import SparkOptions, spark_row
from rmqfast.store import ScanRequest

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType


def row_schema(columns: Sequence[str] | None = None) -> StructType:
    """Returns the Spark schema of the row, or of the given columns in their order."""
    return request_schema(ScanRequest(columns=columns or None))


def request_schema(request: ScanRequest) -> StructType:
    """Returns the Spark schema of the rows of a request."""
    return struct_of(spark_row(replace(request, microseconds=True)))


def struct_of(row: Sequence[tuple[str, str]]) -> StructType:
    """Returns the schema with these names and types. The type of decoded bodies is JSON."""
    from pyspark.sql.types import StructField, StructType

    types = _spark_types()
    # All nullable, since PySpark 4.2 compares a batch's schema with this one field by field.
    return StructType(
        [
            StructField(name, types[kind] if kind in types else StructType.fromJson(json.loads(kind)))
            for name, kind in row
        ]
    )


def columns_of(schema: StructType, options: SparkOptions) -> tuple[str, ...]:
    """Returns the columns of a user's schema. Only the columns in the schema are read; their order is free.

    Raises `UnknownColumnError` for a column that the row lacks, and `ArgumentError` for another type, NOT NULL, an
    empty schema, or columns that the option `columns` does not name.
    """
    return tuple(options.columns_of_schema([_field_of(field) for field in schema.fields]))


def _field_of(field: StructField) -> tuple[str, str, bool]:
    kind = field.dataType
    return field.name, kind.json() if kind.typeName() == "struct" else kind.simpleString(), field.nullable


def _spark_types() -> dict[str, DataType]:
    from pyspark.sql.types import BinaryType, IntegerType, LongType, MapType, StringType, TimestampType

    text = StringType()
    kinds: tuple[DataType, ...] = (text, IntegerType(), LongType(), BinaryType(), TimestampType(), MapType(text, text))
    return {kind.simpleString(): kind for kind in kinds}
