"""A directory of Parquet files as a table. A commit is one file with the position and the names of its data files.

Source: Spark's `DataFrameWriter` and `ExternalCatalogUtils`, whose layout this is.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rmqfast.errors import ArgumentError, TableConflictError
from rmqfast.tables.data_files import DataFile
from rmqfast.tables.directory import Directory
from rmqfast.tables.local_directory import lock_directory
from rmqfast.tables.partitioning import Key, Partitioning, key_texts
from rmqfast.tables.position import Position

if TYPE_CHECKING:
    import pyarrow as pa

#: Characters that Spark and Hive escape in directory names.
ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | frozenset(map(chr, range(0x20)))
#: The directory name of Spark and Hive for an empty value.
NOTHING = "__HIVE_DEFAULT_PARTITION__"
#: The empty file that Spark writes last; later jobs may wait for it.
SUCCESS = "_SUCCESS"
#: Spark, DuckDB and pyarrow do not read directories whose name begins so.
_OWN = "_rmqfast"
_NEW = f"{_OWN}/new"
_COMMIT = f"{_OWN}/commit.json"


@contextmanager
def open_local_parquet(path: Path) -> Iterator[ParquetDirectories]:
    """Yields a directory, locked against other processes. Removes it again if it has nothing but what this made."""
    with lock_directory(path, _OWN) as directory:
        tables = ParquetDirectories(directory)
        try:
            yield tables
        finally:
            tables.remove_uncommitted()


class ParquetDirectories:
    """A directory in which a table can be opened or created."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def open(self, schema: pa.Schema) -> ParquetDirectory | None:
        commit = _read_commit(self._directory)
        if commit is None:
            self._directory.remove_directory(_NEW)
            return None
        table = ParquetDirectory(self._directory, schema, Partitioning.of_names(commit["partition"]))
        table.recover()
        return table

    def create(self, schema: pa.Schema, partitioning: Partitioning) -> ParquetDirectory:
        return ParquetDirectory(self._directory, schema, partitioning)

    def remove_uncommitted(self) -> None:
        """Removes the files of a commit that was not made. Keeps those that a full disk has kept from their places."""
        commit = _read_commit(self._directory)
        if commit is None or self._directory.files(_NEW).isdisjoint(commit["files"]):
            self._directory.remove_directory(_NEW)


class ParquetDirectory:
    """A directory of Parquet files."""

    def __init__(self, directory: Directory, schema: pa.Schema, partitioning: Partitioning) -> None:
        import pyarrow as pa

        self._directory = directory
        self.partitioning: Partitioning = partitioning
        self.name: str = directory.name
        partitions = set(partitioning.names)
        self.file_schema: pa.Schema = pa.schema([field for field in schema if field.name not in partitions])

    def add_fields(self) -> None:
        """Does nothing: each file has its own columns."""

    def has_rows(self) -> bool:
        return bool(self._directory.names() - {_OWN, SUCCESS})

    def read_position(self, form: str) -> Position | None:
        del form
        commit = _read_commit(self._directory)
        return None if commit is None else Position.of_json(json.dumps(commit["position"]), self.name)

    def create_file(self, key: Key) -> tuple[str, Any]:
        texts = zip(self.partitioning.names, key_texts(self.partitioning.names, key), strict=True)
        directories = [f"{name}={_directory_name(text)}" for name, text in texts]
        path = "/".join([*directories, f"part-{uuid.uuid4()}.parquet"])
        return path, self._directory.create(f"{_NEW}/{path}")

    def remove_file(self, path: str) -> None:
        self._directory.remove_file(f"{_NEW}/{path}")

    def commit(self, files: Sequence[DataFile], before: Position | None, after: Position) -> None:
        paths = [file.path for file in files]
        self._directory.flush(f"{_NEW}/{path}" for path in paths)
        commit = {"position": json.loads(after.to_json()), "partition": self.partitioning.names, "files": paths}
        # object stores have no lock: another ingest has committed, or has removed these files when it began
        if self.read_position(after.offsets) != before or not self._directory.files(_NEW).issuperset(paths):
            raise TableConflictError(f"{self.name}: another ingest has written to it")
        # from here on the files are part of the table, even if this process is killed
        self._directory.replace(_COMMIT, json.dumps(commit).encode())
        self.recover()
        self._directory.create(SUCCESS).close()

    def recover(self) -> None:
        """Moves the files of the last commit to their places. Removes those of commits that were never made."""
        commit = _read_commit(self._directory)
        new = self._directory.files(_NEW)
        if commit is not None:
            self._directory.move_out(_NEW, [path for path in commit["files"] if path in new])
        self._directory.remove_directory(_NEW)


def _read_commit(directory: Directory) -> Any:
    data = directory.read(_COMMIT)
    try:
        return None if data is None else json.loads(data)
    except ValueError as error:
        raise ArgumentError(f"{directory.name}/{_COMMIT}: expected JSON, got something else: {error}") from error


def check_apart(store: Path, out: Path, *, is_replaced: bool) -> None:
    """Raises `ArgumentError` if files would be written into a store, or replace it."""
    store, out = store.resolve(), out.resolve()
    if out.is_relative_to(store):
        raise ArgumentError(f"out: expected a path outside of the store, got {out}")
    # overwriting would delete the store
    if is_replaced and store.is_relative_to(out):
        raise ArgumentError(f"out: expected a directory without the store, as it is replaced, got {out}")


def _directory_name(value: str | None) -> str:
    return "".join(f"%{ord(c):02X}" if c in ESCAPED else c for c in value) if value else NOTHING
