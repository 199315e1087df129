"""Iceberg tables. A commit has the rows, and the position in the summary of its snapshot.

Source: Iceberg's table specification, "Snapshots"; `Coordinator` of Iceberg's Kafka Connect sink.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rmqfast.errors import ArgumentError, RmqError, TableConflictError
from rmqfast.extras import import_extra
from rmqfast.tables.columns import adds_fields
from rmqfast.tables.data_files import DataFile
from rmqfast.tables.partitioning import DAY, Key, PartitionColumn, Partitioning, dates_of
from rmqfast.tables.position import KEY, Position

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_ATTEMPTS = 20
#: Transforms that need no further library. Those of other tables are pyiceberg-core's.
_OWN_TRANSFORMS = {"day": dates_of, "identity": lambda values: values}


class IcebergTables:
    """Opens and creates an Iceberg table.

    Args:
        name: The table as `namespace.table`.
        catalog: Name of the catalog in pyiceberg's configuration.
        options: Properties of the catalog, which replace those of the configuration.
    """

    def __init__(self, name: str, catalog: str, options: Mapping[str, str]) -> None:
        library = import_extra("pyiceberg.catalog", "iceberg", library="pyiceberg")
        if not name.rpartition(".")[0]:
            raise ArgumentError(f"out: expected namespace.table for Iceberg, got {name!r}")
        with _errors_of_settings(f"catalog: expected one that pyiceberg can load, got {catalog!r}"):
            self._catalog = library.load_catalog(catalog, **options)
        self._name = name

    def open(self, schema: pa.Schema) -> IcebergTable | None:
        from pyiceberg.exceptions import NoSuchTableError

        try:
            return IcebergTable(self._catalog.load_table(self._name), schema)
        except NoSuchTableError:
            return None

    def create(self, schema: pa.Schema, partitioning: Partitioning) -> IcebergTable:
        from pyiceberg.transforms import DayTransform, IdentityTransform

        self._catalog.create_namespace_if_not_exists(self._name.rpartition(".")[0])
        with (
            _errors_of_settings(self._name),
            self._catalog.create_table_transaction(self._name, schema) as creation,
            creation.update_spec() as spec,
        ):
            for column in partitioning.columns:
                if column.name == DAY:
                    spec.add_field(column.source, DayTransform(), DAY)
                else:
                    spec.add_field(column.source, IdentityTransform(), column.name)
        return IcebergTable(self._catalog.load_table(self._name), schema)


class IcebergTable:
    """An Iceberg table. `schema` has the columns of the rows to write."""

    def __init__(self, native: Any, schema: pa.Schema) -> None:
        self._native = native
        self.name: str = ".".join(native.name())
        self._rows = schema
        self._lacks_fields = adds_fields(self.name, _as_arrow(native.schema()), _as_iceberg(schema))
        self.partitioning: Partitioning = _partitioning_of(native)

    @property
    def file_schema(self) -> pa.Schema:
        return _with_ids(self._rows, _as_arrow(self._native.schema()))

    def add_fields(self) -> None:
        if self._lacks_fields:
            with self._native.update_schema() as update:
                update.union_by_name(self._rows)

    def has_rows(self) -> bool:
        snapshot = self._native.current_snapshot()
        # the count is optional
        return snapshot is not None and snapshot.summary.additional_properties.get("total-records") != "0"

    def read_position(self, form: str) -> Position | None:
        del form
        self._native.refresh()
        snapshot = self._native.current_snapshot()
        while snapshot is not None:
            text = snapshot.summary.additional_properties.get(KEY)
            if text is not None:
                return Position.of_json(text, self.name)
            if _is_first(snapshot):
                return None
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else self._native.snapshot_by_id(parent)
            if snapshot is None:
                # the snapshot with our last rows has expired
                text = self._native.properties.get(KEY)
                return None if text is None else Position.of_json(text, self.name)
        return None

    def create_file(self, key: Key) -> tuple[str, Any]:
        del key
        location = self._native.location_provider().new_data_location(f"{uuid.uuid4()}.parquet")
        return location, self._native.io.new_output(location).create()

    def remove_file(self, path: str) -> None:
        self._native.io.delete(path)

    def commit(self, files: Sequence[DataFile], before: Position | None, after: Position) -> None:
        from pyiceberg.exceptions import CommitFailedException

        entries = [self._entry(file) for file in files]
        for _ in range(_MOST_ATTEMPTS):
            try:
                self._commit(entries, after)
            except CommitFailedException:
                # somebody else has committed, perhaps a compaction
                if self.read_position(after.offsets) != before:
                    raise TableConflictError(f"{self.name}: another ingest has written to it") from None
            else:
                return
        raise TableConflictError(f"{self.name}: {_MOST_ATTEMPTS} commits of others came first")

    def _commit(self, entries: Sequence[Any], after: Position) -> None:
        from pyiceberg.table import Table

        native = self._native
        # without retries: pyiceberg would append behind whatever another ingest has committed meanwhile
        metadata = native.metadata.model_copy(
            update={"properties": {**native.metadata.properties, "commit.retry.num-retries": "0"}}
        )
        once = Table(native.name(), metadata, native.metadata_location, native.io, native.catalog, native.config)
        transaction = once.transaction()
        transaction.set_properties({KEY: after.to_json()})
        with transaction.update_snapshot(snapshot_properties={KEY: after.to_json()}).fast_append() as append:
            for entry in entries:
                append.append_data_file(entry)
        self._native = transaction.commit_transaction()
        self._native.refresh()

    def _entry(self, file: DataFile) -> Any:
        from pyiceberg.io.pyarrow import (
            compute_statistics_plan,
            data_file_statistics_from_parquet_metadata,
            parquet_path_to_id_mapping,
        )
        from pyiceberg.manifest import DataFile as Entry
        from pyiceberg.manifest import DataFileContent, FileFormat
        from pyiceberg.typedef import Record

        schema = self._native.schema()

        def statistics_with(properties: dict[str, str]) -> Any:
            return data_file_statistics_from_parquet_metadata(
                parquet_metadata=file.metadata,
                stats_columns=compute_statistics_plan(schema, {**self._native.properties, **properties}),
                parquet_column_mapping=parquet_path_to_id_mapping(schema),
            )

        try:
            statistics = statistics_with({})
        except OverflowError:
            # a damaged record has a time that is no date: such a file has no bounds
            statistics = statistics_with({"write.metadata.metrics.default": "counts"})
        return Entry.from_args(
            content=DataFileContent.DATA,
            file_path=file.path,
            file_format=FileFormat.PARQUET,
            partition=Record(*file.key),
            file_size_in_bytes=file.size,
            sort_order_id=None,
            spec_id=self._native.spec().spec_id,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )


@contextmanager
def _errors_of_settings(subject: str) -> Iterator[None]:
    """Raises `ArgumentError` where pyiceberg calls a setting of a catalog wrong, or has none."""
    try:
        yield
    except ValueError as error:
        if isinstance(error, RmqError):
            raise
        wrong = ArgumentError(f"{subject}: {error}")
        wrong.add_note("settings stand in ~/.pyiceberg.yaml, or are options: --option type=sql --option uri=...")
        raise wrong from None


def _is_first(snapshot: Any) -> bool:
    """Whether a table began with a snapshot, so that all of its rows are new. The parent of others may have expired."""
    summary = snapshot.summary.additional_properties
    added, total = summary.get("added-data-files", "0"), summary.get("total-data-files")
    return snapshot.parent_snapshot_id is None and added == total and "deleted-data-files" not in summary


def _partitioning_of(native: Any) -> Partitioning:
    """Returns the partitions of a table, whoever created it."""
    schema = native.schema()
    columns = []
    for field in native.spec().fields:
        source = schema.find_field(field.source_id)
        name = schema.find_column_name(field.source_id)
        if "." in name:
            raise ArgumentError(f"{'.'.join(native.name())}: expected no partition by a field of a struct, got {name}")
        values_of = _OWN_TRANSFORMS.get(str(field.transform)) or field.transform.pyarrow_transform(source.field_type)
        columns.append(PartitionColumn(field.name, name, values_of))
    return Partitioning(tuple(columns))


def _as_arrow(schema: Any) -> pa.Schema:
    """Returns an Iceberg schema as Arrow's, with the ids of its fields."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    arrow: pa.Schema = schema_to_pyarrow(schema, include_field_ids=True)
    return arrow


def _as_iceberg(schema: pa.Schema) -> pa.Schema:
    """Returns a schema with the types that Iceberg makes of its own."""
    from pyiceberg.catalog import Catalog

    return _as_arrow(Catalog._convert_schema_if_needed(schema))  # noqa: SLF001 - the only way without a table


def _with_ids(schema: pa.Schema, table: pa.Schema) -> pa.Schema:
    """Returns the columns of rows with the ids that a table has for them, by which its readers find them."""
    import pyarrow as pa

    return pa.schema([_with_id(field, table.field(field.name)) for field in schema])


def _with_id(field: pa.Field, held: pa.Field) -> pa.Field:
    return held.with_type(_with_inner_ids(field.type, held.type))


def _with_inner_ids(type_: pa.DataType, held: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_struct(type_):
        return pa.struct([_with_id(field, held.field(field.name)) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(_with_id(type_.key_field, held.key_field), _with_id(type_.item_field, held.item_field))
    if pa.types.is_list(type_):
        return pa.list_(_with_id(type_.value_field, held.value_field))
    # strings have offsets of 32 bits, as those of scans; other types may be wider in Iceberg
    is_long = pa.types.is_large_string(held) or pa.types.is_large_binary(held)
    return type_ if is_long else held
