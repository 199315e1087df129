"""The table of errors beside a table: damaged bytes, and bodies that could not be decoded, each with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rmqfast.message import BadBody, Damage
from rmqfast.store.decode import VALUE
from rmqfast.tables.data_files import DataFile, DataFiles
from rmqfast.tables.position import Position, Selection
from rmqfast.tables.row_groups import RowGroups
from rmqfast.tables.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

#: What the name of the table adds to that of the table with the rows.
SUFFIX = "__errors"
#: Damaged bytes that a row holds, at most. Its `length` counts all.
_RAW_BYTES = 1 << 20
#: Columns of a message that are columns of an error, too.
_OF_MESSAGE = ("topic", "broker_name", "queue_id", "queue_offset", "physical_offset", "store_timestamp")


def error_schema() -> pa.Schema:
    """Returns the columns of a table of errors."""
    import pyarrow as pa

    return pa.schema(
        [
            # "damage" or "body"
            ("kind", pa.string()),
            ("reason", pa.string()),
            # null for bytes of which no message is known
            ("topic", pa.string()),
            ("broker_name", pa.string()),
            ("queue_id", pa.int32()),
            ("queue_offset", pa.int64()),
            ("physical_offset", pa.int64()),
            ("store_timestamp", pa.timestamp("us", "UTC")),
            # of damage: the file, and the number of bytes; of a body its length
            ("file", pa.string()),
            ("length", pa.int64()),
            ("raw", pa.binary()),
        ]
    )


class ErrorsTable:
    """A table of errors with its position, which is that of the last step that had errors.

    Its commits come before those of the rows: a step whose errors are committed has to be finished with the same end.
    """

    def __init__(self, table: Table, position: Position | None) -> None:
        self._table, self._position = table, position

    def unfinished_end(self, at: str) -> str | None:
        """Returns the end of the step from `at` whose errors are committed. None if there is none."""
        position = self._position
        is_begun = position is not None and position.start == Position(offsets=at, selection=None).offsets
        return position.offsets if position is not None and is_begun else None

    def new_rows(self, compression: str, spill: Path | None) -> ErrorRows:
        """Returns a collection of the errors of a step."""
        return ErrorRows(self._table, compression, spill)

    def commit(self, files: Sequence[DataFile], start: str, end: str, selection: Selection) -> None:
        """Adds the errors of a step. Does nothing without any.

        Raises:
            TableConflictError: Another ingest has written to the table.
        """
        if files:
            after = Position(offsets=end, selection=selection, start=start)
            self._table.commit(files, self._position, after)
            self._position = after


class ErrorRows:
    """The errors of a step, written to files. Threads may add errors at the same time."""

    def __init__(self, table: Table, compression: str, spill: Path | None) -> None:
        self._schema = error_schema()
        self._groups = RowGroups(self._schema, spill)
        self._files = DataFiles(table.create_file, table.remove_file, table.file_schema, compression)

    def add_bodies(self, batch: pa.RecordBatch, reasons: Sequence[BadBody]) -> None:
        """Adds messages whose body could not be decoded, with the reasons that a scan lists."""
        import pyarrow as pa
        import pyarrow.compute as pc

        by_place = {(bad.topic, bad.queue_id, bad.queue_offset, bad.physical_offset): bad.reason for bad in reasons}
        places = zip(
            *(batch.column(name).to_pylist() for name in ("topic", "queue_id", "queue_offset", "physical_offset")),
            strict=True,
        )
        columns = {
            "kind": pa.array(["body"] * batch.num_rows),
            "reason": pa.array([by_place.get(place) for place in places], pa.string()),
            **{name: batch.column(name) for name in _OF_MESSAGE},
            "file": pa.nulls(batch.num_rows, pa.string()),
            "length": pc.binary_length(batch.column("body")).cast(pa.int64()),
            "raw": batch.column("body"),
        }
        self._add(columns)

    def add_damage(self, damage: Sequence[Damage]) -> None:
        """Adds damaged bytes of a store's log, with the first MiB of each place."""
        import pyarrow as pa

        if not damage:
            return
        rows: list[dict[str, Any]] = [
            {
                "kind": "damage",
                "reason": place.reason,
                "broker_name": place.broker_name,
                "physical_offset": place.offset,
                "file": place.file,
                "length": place.length,
                "raw": _read_raw(place),
            }
            for place in damage
        ]
        columns = {field.name: pa.array([row.get(field.name) for row in rows], field.type) for field in self._schema}
        self._add(columns)

    def finish(self) -> list[DataFile]:
        """Returns the files of all errors."""
        for key, batches in self._groups.take_rest():
            self._files.write(key, batches)
        self._groups.close()
        return self._files.close()

    def discard(self) -> None:
        """Removes the files."""
        self._groups.close()
        self._files.discard()

    def _add(self, columns: dict[str, pa.Array]) -> None:
        import pyarrow as pa

        batch = pa.RecordBatch.from_arrays([columns[name] for name in self._schema.names], schema=self._schema)
        full = self._groups.add((), batch, is_slice=False)
        if full is not None:
            self._files.write((), full)


def split_bad_bodies(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
    """Returns the rows whose body could be decoded, or is missing, and the others; None without any."""
    import pyarrow.compute as pc

    if batch.column(VALUE).null_count == batch.column("body").null_count:
        return batch, None
    is_bad = pc.and_(pc.is_null(batch.column(VALUE)), pc.is_valid(batch.column("body")))
    return batch.filter(pc.invert(is_bad)), batch.filter(is_bad)


def _read_raw(place: Damage) -> bytes | None:
    """Returns the damaged bytes of a log file. None if the file cannot be read."""
    path = Path(place.file)
    # the name of a log file is the offset of its first byte
    at = place.offset - int(path.name) if path.name.isdecimal() else place.offset
    try:
        with path.open("rb") as file:
            file.seek(at)
            # without a length only a part of the message is damaged, which begins with its size
            length = place.length or int.from_bytes(file.read(4), "big")
            file.seek(at)
            return file.read(min(length, _RAW_BYTES))
    except OSError:
        return None
