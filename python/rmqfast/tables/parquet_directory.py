"""A directory of Parquet files as a table. A commit is one file with the position and the names of its data files.

Source: Spark's `DataFrameWriter` and `ExternalCatalogUtils`, whose layout this is.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rmqfast.errors import ArgumentError, StoreBusyError
from rmqfast.paths import exists, list_directory
from rmqfast.system import owned_directory, sync_directory, sync_file
from rmqfast.tables.data_files import DataFile
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
_NEW = "new"
_COMMIT = "commit.json"


@contextmanager
def open_parquet_directory(path: Path) -> Iterator[ParquetDirectories]:
    """Yields a directory, locked against other processes. Removes it again if it has nothing but what this made."""
    own = path / _OWN
    missing = [parent for parent in (path, *path.parents) if not exists(parent)]
    own.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(owned_directory(own))
        except (BlockingIOError, FileNotFoundError):
            error = StoreBusyError(f"{path}: another process writes to it")
            error.add_note("wait until it has ended, or write elsewhere")
            raise error from None
        try:
            yield ParquetDirectories(path)
        finally:
            shutil.rmtree(own / _NEW, ignore_errors=True)
            with suppress(OSError):
                # fails at the first directory that has something to keep
                for directory in (own, *missing):
                    directory.rmdir()


class ParquetDirectories:
    """A locked directory, in which a table can be opened or created."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def open(self, schema: pa.Schema) -> ParquetDirectory | None:
        commit = self._path / _OWN / _COMMIT
        if not exists(commit):
            shutil.rmtree(self._path / _OWN / _NEW, ignore_errors=True)
            return None
        table = ParquetDirectory(self._path, schema, Partitioning.of_names(json.loads(commit.read_text())["partition"]))
        table.recover()
        return table

    def create(self, schema: pa.Schema, partitioning: Partitioning) -> ParquetDirectory:
        return ParquetDirectory(self._path, schema, partitioning)


class ParquetDirectory:
    """A directory of Parquet files."""

    def __init__(self, path: Path, schema: pa.Schema, partitioning: Partitioning) -> None:
        import pyarrow as pa

        self._path, self.partitioning = path, partitioning
        self.name = str(path)
        partitions = set(partitioning.names)
        self.file_schema = pa.schema([field for field in schema if field.name not in partitions])

    def has_rows(self) -> bool:
        return any(each.name not in {_OWN, SUCCESS} for each in list_directory(self._path))

    def read_position(self, form: str) -> Position | None:
        del form
        commit = self._read_commit()
        return None if commit is None else Position.of_json(json.dumps(commit["position"]), self.name)

    def create_file(self, key: Key) -> tuple[str, Any]:
        import pyarrow as pa

        texts = zip(self.partitioning.names, key_texts(self.partitioning.names, key), strict=True)
        path = Path(*(f"{name}={_directory_name(text)}" for name, text in texts), f"part-{uuid.uuid4()}.parquet")
        new = self._new / path
        new.parent.mkdir(parents=True, exist_ok=True)
        return str(path), pa.OSFile(str(new), "wb")

    def remove_file(self, path: str) -> None:
        (self._new / path).unlink(missing_ok=True)

    def commit(self, files: Sequence[DataFile], before: Position | None, after: Position) -> None:
        # the lock of the directory keeps others away
        del before
        for file in files:
            with (self._new / file.path).open("rb") as opened:
                sync_file(opened.fileno())
        commit = {
            "position": json.loads(after.to_json()),
            "partition": self.partitioning.names,
            "files": [file.path for file in files],
        }
        partial = self._path / _OWN / f"{_COMMIT}.tmp"
        with partial.open("w") as opened_text:
            json.dump(commit, opened_text)
            opened_text.flush()
            sync_file(opened_text.fileno())
        # from here on the files are part of the table, even if this process is killed
        partial.replace(self._path / _OWN / _COMMIT)
        sync_directory(self._path / _OWN)
        self.recover()
        (self._path / SUCCESS).touch()

    def recover(self) -> None:
        """Moves the files of the last commit to their places. Removes those of commits that were never made."""
        commit = self._read_commit()
        places = set()
        for name in commit["files"] if commit is not None else ():
            new, place = self._new / name, self._path / name
            if exists(new):
                place.parent.mkdir(parents=True, exist_ok=True)
                new.replace(place)
                places |= {place.parent, *place.parent.parents}
        for place in places:
            if place.is_relative_to(self._path):
                sync_directory(place)
        shutil.rmtree(self._new, ignore_errors=True)

    @property
    def _new(self) -> Path:
        return self._path / _OWN / _NEW

    def _read_commit(self) -> Any:
        try:
            return json.loads((self._path / _OWN / _COMMIT).read_text())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise ArgumentError(f"{self._path / _OWN / _COMMIT}: expected JSON, got something else: {error}") from error


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
