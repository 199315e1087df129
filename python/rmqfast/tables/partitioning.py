"""The partitions of a table: columns by whose values rows stand in separate files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rmqfast.errors import ArgumentError

if TYPE_CHECKING:
    import pyarrow as pa

#: Columns of messages that may be partitions as they are. The UTC day of `store_timestamp` is `day`.
_COLUMNS = ("topic", "broker_name", "queue_id", "tags")
DAY = "day"
NAMES = (DAY, *_COLUMNS)
#: The days of 0001-01-01 and 9999-12-31.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
#: Runs of equal values up to which a batch is cut as it is; with more, its rows are sorted first.
_MOST_RUNS = 8

Key = tuple[Any, ...]
"""The values of the partition columns. A day is its number since 1970."""


@dataclass(frozen=True)
class PartitionColumn:
    """A column by which a table is partitioned, and how its values follow from a message's column."""

    name: str
    source: str
    values_of: Callable[[pa.Array], pa.Array]


@dataclass(frozen=True)
class Partitioning:
    """All partition columns of a table."""

    columns: tuple[PartitionColumn, ...]

    @classmethod
    def of_names(cls, names: Sequence[str]) -> Partitioning:
        """Returns the partitions by some of `day`, `topic`, `broker_name`, `queue_id` and `tags`."""
        if isinstance(names, str) or len(set(names)) < len(names):
            raise ArgumentError(f"partition: expected a list of names, each once, got {names!r}")
        for name in names:
            if name not in NAMES:
                raise ArgumentError(f"partition: expected some of {', '.join(NAMES)}, got {name!r}")
        return cls(tuple(_column(name) for name in names))

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def split(self, batch: pa.RecordBatch) -> Iterator[tuple[Key, pa.RecordBatch]]:
        """Yields the rows of each partition. Rows of a partition keep their order.

        Batches with rows of one partition are yielded as they are, others as slices.
        """
        if batch.num_rows == 0:
            return
        values = [column.values_of(batch.column(column.source)) for column in self.columns]
        ends = _run_ends(values, batch.num_rows)
        if len(ends) > _MOST_RUNS:
            values, batch = _sorted(values, batch)
            ends = _run_ends(values, batch.num_rows)
        for start, end in pairwise([0, *ends]):
            key = tuple(column[start].as_py() for column in values)
            yield key, batch if len(ends) == 1 else batch.slice(start, end - start)


def day_text(day: int) -> str:
    """Returns a day as `2026-11-21`."""
    return (date(1970, 1, 1) + timedelta(days=day)).isoformat()


def key_texts(names: Sequence[str], key: Key) -> list[str | None]:
    """Returns the values of a key as Hive and Delta write them. None stays None."""
    return [
        None if value is None else day_text(value) if name == DAY else str(value)
        for name, value in zip(names, key, strict=True)
    ]


def dates_of(stored: pa.Array) -> pa.Array:
    """Returns the UTC days of times, and the nearest date for times that only damaged records have."""
    import pyarrow.compute as pc

    return pc.min_element_wise(pc.max_element_wise(_days_of(stored), _FIRST_DAY), _LAST_DAY)


def _column(name: str) -> PartitionColumn:
    if name == DAY:
        return PartitionColumn(name, "store_timestamp", _dates_or_null)
    return PartitionColumn(name, name, lambda values: values)


def _days_of(stored: pa.Array) -> pa.Array:
    import pyarrow as pa

    # computed from the number: Arrow needs a time zone database even for UTC, which a container may lack
    utc = stored.cast(pa.int64()).cast(pa.timestamp(stored.type.unit))
    return utc.cast(pa.date32()).cast(pa.int32())


def _dates_or_null(stored: pa.Array) -> pa.Array:
    """Returns days, and null for those that only damaged records have: readers do not take them for dates."""
    import pyarrow as pa
    import pyarrow.compute as pc

    days = _days_of(stored)
    return pc.if_else(pc.equal(days, dates_of(stored)), days, pa.scalar(None, pa.int32()))


def _run_ends(values: Sequence[pa.Array], rows: int) -> list[int]:
    import pyarrow.compute as pc

    ends = {end for column in values for end in pc.run_end_encode(column).run_ends.to_pylist()}
    return sorted(ends | {rows})


def _sorted(values: Sequence[pa.Array], batch: pa.RecordBatch) -> tuple[list[pa.Array], pa.RecordBatch]:
    import pyarrow as pa
    import pyarrow.compute as pc

    names = [str(number) for number in range(len(values))]
    keys = pa.RecordBatch.from_arrays(list(values), names)
    # a stable sort
    order = pc.sort_indices(keys, [(name, "ascending") for name in names])
    return keys.take(order).columns, batch.take(order)
