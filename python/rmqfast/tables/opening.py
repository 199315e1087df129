"""Opens tables at their places: a directory, a URL, or a name in a catalog."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rmqfast.cluster import MessageCluster
from rmqfast.errors import ArgumentError
from rmqfast.paths import local_path
from rmqfast.store.new_directory import new_directory
from rmqfast.tables.delta import DeltaTables
from rmqfast.tables.iceberg import IcebergTables
from rmqfast.tables.parquet_directory import ParquetDirectories, check_apart, open_local_parquet
from rmqfast.tables.partitioning import Partitioning
from rmqfast.tables.position import Position, Selection
from rmqfast.tables.remote_directory import is_url, open_remote_directory
from rmqfast.tables.sources import Stores, store_paths
from rmqfast.tables.table import Table, Tables

if TYPE_CHECKING:
    import pyarrow as pa

Format = Literal["parquet", "delta", "iceberg"]
Mode = Literal["resume", "error", "append", "overwrite"]


@contextmanager
def open_tables(
    format: Format,  # noqa: A002
    source: Stores | MessageCluster,
    out: str | os.PathLike[str],
    *,
    mode: Mode,
    catalog: str,
    options: Mapping[str, str],
) -> Iterator[Tables]:
    """Yields the place of a table. `source` is what it is written from, which must not lie there."""
    if format == "iceberg":
        yield IcebergTables(os.fspath(out), catalog, options)
    elif format == "delta":
        if "://" not in os.fspath(out):
            _check_apart(source, Path(out), mode)
        yield DeltaTables(os.fspath(out), options)
    elif is_url(out):
        if mode == "overwrite":
            raise ArgumentError(
                "mode: expected resume, error or append at a URL, got 'overwrite': remove the files first"
            )
        yield ParquetDirectories(open_remote_directory(os.fspath(out), options))
    else:
        if options:
            raise ArgumentError(f"options: expected none for Parquet at a path, got {', '.join(options)}")
        with ExitStack() as stack:
            path = local_path(out, "out")
            _check_apart(source, path, mode)
            if mode == "overwrite":
                path = stack.enter_context(new_directory(path, "overwrite"))
            yield stack.enter_context(open_local_parquet(path))


def open_table(
    tables: Tables, schema: pa.Schema, partitioning: Partitioning, *, initial: str, selection: Selection, mode: Mode
) -> tuple[Table, Position | None]:
    """Returns a table, created if necessary, and its position."""
    table, position = tables.open(schema), None
    if table is None:
        table = tables.create(schema, partitioning)
    elif mode == "error":
        raise ArgumentError(f"out: expected no table yet, got {table.name}; mode resume continues it")
    else:
        position = table.read_position(initial)
    if position is not None:
        given = Position(offsets=initial, selection=None).source
        if position.source != given:
            raise ArgumentError(
                f"source: expected {position.source}, with which {table.name} was begun, got {given}; "
                "write its messages to another table"
            )
    if position is not None and position.selection is not None:
        position.selection.check_equal(selection, table.name)
    if position is None and mode != "append" and table.has_rows():
        raise ArgumentError(
            f"out: expected no table yet, or one that an ingest began, got {table.name}, which others have written; "
            "mode append adds to it nevertheless"
        )
    # not before: a table that is refused stays as it is
    table.add_fields()
    return table, position


def _check_apart(source: Stores | MessageCluster, out: Path, mode: Mode) -> None:
    if not isinstance(source, MessageCluster):
        for path in store_paths(source):
            check_apart(path, out, is_replaced=mode == "overwrite")
