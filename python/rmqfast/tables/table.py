"""A table that an ingest writes to: Parquet files, a Delta table or an Iceberg table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from rmqfast.tables.data_files import DataFile
from rmqfast.tables.partitioning import Key, Partitioning
from rmqfast.tables.position import Position

if TYPE_CHECKING:
    import pyarrow as pa


class Table(Protocol):
    """A table with its position. It exists before the first commit."""

    @property
    def name(self) -> str:
        """The table's place, for errors."""
        ...

    @property
    def partitioning(self) -> Partitioning: ...

    @property
    def file_schema(self) -> pa.Schema:
        """The columns of the data files."""
        ...

    def has_rows(self) -> bool: ...

    def add_fields(self) -> None:
        """Adds the fields that rows have and the table lacks. Called once, after all checks."""
        ...

    def read_position(self, form: str) -> Position | None:
        """Returns the position that belongs to the table's present rows. None if no ingest has written to it.

        `form` are any offsets of the source, for tables that have kept only numbers.
        """
        ...

    def create_file(self, key: Key) -> tuple[str, Any]:
        """Creates a data file for a partition. Returns its path and an open `pyarrow.NativeFile`."""
        ...

    def remove_file(self, path: str) -> None:
        """Removes a data file that is not part of the table."""
        ...

    def commit(self, files: Sequence[DataFile], before: Position | None, after: Position) -> None:
        """Adds files to the table, and sets its position, both or neither.

        Raises:
            TableConflictError: The position is not `before` any more, since another ingest has written to the table.
        """
        ...


class Tables(Protocol):
    """The place of a table, where it can be opened or created."""

    def open(self, schema: pa.Schema) -> Table | None:
        """Returns the table, to which rows with the columns of `schema` can be added. None if there is no table."""
        ...

    def create(self, schema: pa.Schema, partitioning: Partitioning) -> Table:
        """Creates the table, without rows."""
        ...
