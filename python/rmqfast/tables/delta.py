"""Delta tables. A commit has the rows, and the position as transactions of an application.

Source: the Delta protocol, `SetTransaction` and "Per-file Statistics"; `DeltaSink` of Delta Lake.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rmqfast.errors import ArgumentError, TableConflictError
from rmqfast.extras import import_extra
from rmqfast.tables.columns import adds_fields
from rmqfast.tables.data_files import DataFile
from rmqfast.tables.partitioning import DAY, Key, Partitioning, key_texts
from rmqfast.tables.position import KEY, Position, with_numbers

if TYPE_CHECKING:
    import pyarrow as pa

#: Name of the application in transactions. Its version is the table's version of our last commit.
_APPLICATION = "rmqfast"
#: Operations after which a table has none of the rows of before.
_REPLACING = (
    "CREATE OR REPLACE TABLE",
    "CREATE OR REPLACE TABLE AS SELECT",
    "REPLACE TABLE",
    "REPLACE TABLE AS SELECT",
)
_MOST_ATTEMPTS = 20


class DeltaTables:
    """Opens and creates the Delta table at a path or URL.

    Args:
        location: Path or URL.
        options: Options of the storage, as deltalake takes them.
    """

    def __init__(self, location: str, options: Mapping[str, str]) -> None:
        self._deltalake = import_extra("deltalake", "delta")
        self._location, self._options = location, dict(options)

    def open(self, schema: pa.Schema) -> DeltaTable | None:
        """Returns the table. None if there is none."""
        if not self._deltalake.DeltaTable.is_deltatable(self._location, self._options):
            return None
        return DeltaTable(self._load(), schema, self._options)

    def create(self, schema: pa.Schema, partitioning: Partitioning) -> DeltaTable:
        """Creates the table, without rows."""
        self._deltalake.DeltaTable.create(
            self._location,
            with_partitions(schema, partitioning),
            # another process may have created it just now
            mode="ignore",
            partition_by=partitioning.names,
            storage_options=self._options,
        )
        return DeltaTable(self._load(), schema, self._options)

    def _load(self) -> Any:
        return self._deltalake.DeltaTable(self._location, storage_options=self._options)


class DeltaTable:
    """A Delta table. `schema` has the columns of the rows to write."""

    def __init__(self, native: Any, schema: pa.Schema, options: Mapping[str, str]) -> None:
        import pyarrow as pa
        from deltalake.fs import DeltaStorageHandler
        from pyarrow import fs

        self._native, self._options = native, dict(options)
        self.name: str = native.table_uri
        self._files = fs.PyFileSystem(DeltaStorageHandler.from_table(native._table))  # noqa: SLF001 - the only way
        metadata = native.metadata()
        self.partitioning: Partitioning = Partitioning.of_names(metadata.partition_columns)
        self._rows = with_partitions(schema, self.partitioning)
        self._lacks_fields = adds_fields(self.name, pa.schema(native.schema().to_arrow()), _as_delta(self._rows))
        partitions = metadata.partition_columns
        self.file_schema: pa.Schema = pa.schema([field for field in schema if field.name not in partitions])
        if "delta.setTransactionRetentionDuration" in metadata.configuration:
            raise ArgumentError(
                f"{self.name}: expected a table without delta.setTransactionRetentionDuration, which would make it "
                "forget its position"
            )

    def add_fields(self) -> None:
        from deltalake import write_deltalake

        if self._lacks_fields:
            # a commit without rows
            write_deltalake(self._native, self._rows.empty_table(), mode="append", schema_mode="merge")
            self._native.update_incremental()

    def has_rows(self) -> bool:
        return bool(self._native.file_uris())

    def read_position(self, form: str) -> Position | None:
        self._native.update_incremental()
        last, version = self._native.transaction_version(_APPLICATION), self._native.version()
        if last is None:
            return None
        entries = self._native.history(version - last + 1)
        if any(entry.get("operation") == "RESTORE" for entry in entries):
            # the rows may be those of any earlier version
            entries = self._native.history()
        for entry in entries:
            if entry["version"] > version:
                continue
            if KEY in entry:
                return Position.of_json(entry[KEY], self.name)
            operation = entry.get("operation")
            if entry["version"] == 0 or operation in _REPLACING:
                return None
            if operation == "RESTORE":
                version = self._restored_version(entry["operationParameters"])
        return self._position_of_transactions(version, form)

    def create_file(self, key: Key) -> tuple[str, Any]:
        names = self.partitioning.names
        # readers take values from the log: the directories are for people, so any character may be replaced
        parts = [
            f"{name}={re.sub(r'[^A-Za-z0-9_.-]', '_', text or '')}"
            for name, text in zip(names, key_texts(names, key), strict=True)
        ]
        path = "/".join([*parts, f"part-{uuid.uuid4()}.parquet"])
        return path, self._files.open_output_stream(path)

    def remove_file(self, path: str) -> None:
        self._files.delete_file(path)

    def commit(self, files: Sequence[DataFile], before: Position | None, after: Position) -> None:
        from deltalake.exceptions import CommitFailedError
        from deltalake.transaction import AddAction, CommitProperties, Transaction

        names, now = self.partitioning.names, time.time_ns() // 1_000_000
        actions = [
            AddAction(
                path=file.path,
                size=file.size,
                partition_values=dict(zip(names, key_texts(names, file.key), strict=True)),
                modification_time=now,
                data_change=True,
                stats=statistics_of(file.metadata),
            )
            for file in files
        ]
        known = {} if before is None else before.numbers()
        moved = {path: number for path, number in after.numbers().items() if known.get(path) != number}
        for _ in range(_MOST_ATTEMPTS):
            version = self._native.version() + 1
            marks = [Transaction(_APPLICATION, version)]
            marks += [Transaction(f"{_APPLICATION}/{path}", number) for path, number in moved.items()]
            properties = CommitProperties(
                custom_metadata={KEY: after.to_json()}, max_commit_retries=0, app_transactions=marks
            )
            try:
                self._native.create_write_transaction(
                    actions, "append", self._native.schema(), names, commit_properties=properties
                )
            except CommitFailedError:
                # somebody else has committed, perhaps a compaction
                form = after.offsets if before is None else before.offsets
                if self.read_position(form) != before:
                    raise TableConflictError(f"{self.name}: another ingest has written to it") from None
            else:
                self._native.update_incremental()
                return
        raise TableConflictError(f"{self.name}: {_MOST_ATTEMPTS} commits of others came first")

    def _restored_version(self, parameters: Mapping[str, Any]) -> int:
        version = parameters.get("version")
        return int(self._at(parameters["timestamp"]).version() if version in {None, "null"} else version)

    def _position_of_transactions(self, version: int, form: str) -> Position:
        """Returns the position of a table whose log has lost our commits: transactions are kept for longer."""
        table = self._at(version)
        paths = Position(offsets=form, selection=None).numbers()
        known = {path: table.transaction_version(f"{_APPLICATION}/{path}") for path in paths}
        numbers = {path: number for path, number in known.items() if number is not None}
        return Position(offsets=with_numbers(form, numbers), selection=None)

    def _at(self, version: int | str) -> Any:
        from deltalake import DeltaTable as NativeTable

        table = NativeTable(self.name, storage_options=self._options)
        table.load_as_version(version)
        return table


def with_partitions(schema: pa.Schema, partitioning: Partitioning) -> pa.Schema:
    """Returns the columns of a table, of which the day is none of the rows."""
    import pyarrow as pa

    return schema.append(pa.field(DAY, pa.date32())) if DAY in partitioning.names else schema


def _as_delta(schema: pa.Schema) -> pa.Schema:
    """Returns a schema with the types that Delta makes of its own."""
    import pyarrow as pa
    from deltalake import Schema

    return pa.schema(Schema.from_arrow(schema).to_arrow())


def statistics_of(footer: Any) -> str:
    """Returns the statistics of a file as Delta keeps them: rows, and bounds of numbers and times."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for number in range(footer.num_columns):
        name = footer.schema.column(number).path
        chunks = [footer.row_group(group).column(number).statistics for group in range(footer.num_row_groups)]
        if "." in name or any(chunk is None or not chunk.has_null_count for chunk in chunks):
            continue
        nulls[name] = sum(chunk.null_count for chunk in chunks)
        if not all(chunk.has_min_max and chunk.physical_type in {"INT32", "INT64"} for chunk in chunks):
            continue
        bounds = min(chunk.min_raw for chunk in chunks), max(chunk.max_raw for chunk in chunks)
        if footer.schema.column(number).logical_type.type == "TIMESTAMP":
            # milliseconds, as readers expect; a high bound must not become lower
            texts = _time_text(bounds[0] // 1000), _time_text(-(-bounds[1] // 1000))
            low |= {name: texts[0]} if None not in texts else {}
            high |= {name: texts[1]} if None not in texts else {}
        else:
            low[name], high[name] = bounds
    return json.dumps({"numRecords": footer.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls})


def _time_text(milliseconds: int) -> str | None:
    """Returns a time as Delta writes it. None for one that a damaged record has, and that no date can be."""
    seconds, rest = divmod(milliseconds, 1000)
    try:
        text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return None
    return f"{text}.{rest:03}Z"
