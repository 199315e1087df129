"""A scan as a dataset of pyarrow, of which SQL engines and data frames read only what a query asks for.

Source: `pyarrow.dataset.Dataset` and `Fragment`, whose faces DuckDB, DataFusion, Polars, Ibis and narwhals know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

from rmqfast.arguments import integer, unknown_argument
from rmqfast.errors import ArgumentError
from rmqfast.message import Damage
from rmqfast.store.fragment import Fragment
from rmqfast.store.scan import Scan

if TYPE_CHECKING:
    # pyarrow ships no types, and what has an unknown base is unknown itself
    _Dataset = object
else:
    _Dataset = pyarrow.dataset.Dataset

# Substrait's form of an expression doubles with each level: 10 levels are 10 MB
_MOST_LEVELS = 10
# values in the text of an expression: those of `is_in`, which are not escaped, and strings
_VALUES = re.compile(r'value_set=.*?\n\], null_matching|"(?:[^"\\]|\\.)*"', re.DOTALL)


class ScanDataset(_Dataset):
    """Messages of a scan as a `pyarrow.dataset.Dataset`. A query reads the columns and messages that it asks for.

    `MessageStore.table` and `Scan.dataset` make it. A filter by tag, queue, offset, store time or topic narrows the
    scan; pyarrow then applies the whole filter, so that answers are always those over all messages. Each query reads
    the messages again.

    Attributes:
        scan: The scan whose messages the dataset has.

    Example:
        >>> import duckdb, rmqfast
        >>> orders = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4")).table("fx_q1")
        >>> duckdb.sql("select queue_id, count(*) from orders where tags = 'TagA' group by all").fetchall()
        [(0, 105)]
        >>> orders.to_table(columns=["queue_offset"], filter=orders.field("queue_offset") < 2).to_pydict()
        {'queue_offset': [0, 1]}
    """

    # `super().__init__` is not called: it is for datasets of C++, whose methods are all overridden here
    def __init__(self, scan: Scan, condition: pc.Expression | None = None) -> None:
        self.scan = scan
        self._condition = condition

    def __reduce__(self) -> tuple[object, ...]:
        return ScanDataset, (self.scan, self._condition)

    def __repr__(self) -> str:
        return f"ScanDataset({', '.join(self.schema.names)})"

    @staticmethod
    def field(*name: str) -> pc.Expression:
        """Returns an expression that refers to a column, as `pyarrow.dataset.field` does."""
        return pyarrow.dataset.field(*name)

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types."""
        return self.scan.schema

    @property
    def partition_expression(self) -> pc.Expression:
        """The condition that all messages meet: none."""
        return pc.scalar(True)  # noqa: FBT003 - a value

    @property
    def damage(self) -> list[Damage]:
        """The damage that the latest query has found so far. See `Scan.damage`."""
        return self.scan.damage

    def scanner(
        self,
        columns: Sequence[str] | Mapping[str, pc.Expression] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002 - pyarrow's name
        **options: Any,
    ) -> pyarrow.dataset.Scanner:
        """Returns a scanner that reads once.

        Args:
            columns: Names of columns, or expressions by name. Default: all columns.
            filter: Condition on the columns.
            options: Further arguments of `pyarrow.dataset.Scanner.from_batches`, such as `batch_size`.
        """
        return self._scanner(columns, filter, **options)

    def _scanner(
        self,
        columns: Sequence[str] | Mapping[str, pc.Expression] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002 - as above
        *,
        limit: int | None = None,
        **options: Any,
    ) -> pyarrow.dataset.Scanner:
        condition = self._both(filter)
        # a C stream, never a generator: a thread of Arrow that runs Python code while the interpreter ends would hang
        reader = pa.RecordBatchReader.from_stream(self._narrowed_scan(columns, condition, limit))
        columns = self.schema.names if columns is None else columns
        for name in options.keys() - _SCANNER_OPTIONS - _FILE_OPTIONS:
            raise unknown_argument(name, ("columns", "filter", *sorted(_SCANNER_OPTIONS)))
        known = {name: value for name, value in options.items() if name in _SCANNER_OPTIONS}
        return pyarrow.dataset.Scanner.from_batches(reader, columns=columns, filter=condition, **known)

    def get_fragments(self, filter: pc.Expression | None = None) -> Iterator[Fragment]:  # noqa: A002 - as above
        """Returns the pieces of the scan, each of which can be read by another thread. See `scanner`."""
        condition = self._both(filter)
        narrowed = self._narrowed_scan(None, condition)
        # also the rows of `filter`: pyarrow leaves rows that do not match to the scanner of the fragment
        return iter([Fragment(ScanDataset(part, self._condition)) for part in narrowed.parts()])

    def to_table(self, *arguments: Any, **options: Any) -> pa.Table:
        """Returns the rows as a table. Takes the arguments of `scanner`."""
        return self.scanner(*arguments, **options).to_table()

    def to_batches(self, *arguments: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        """Returns an iterator over the rows as record batches. Takes the arguments of `scanner`."""
        return iter(self.scanner(*arguments, **options).to_reader())

    def count_rows(self, filter: pc.Expression | None = None, **options: Any) -> int:  # noqa: A002 - as above
        """Returns the number of messages that match a filter. See `Scan.count`."""
        if self._both(filter) is None:
            return self.scan.count()
        return int(self.scanner([], filter, **options).count_rows())

    def head(self, num_rows: int, *arguments: Any, **options: Any) -> pa.Table:
        """Returns the first rows as a table. Takes the arguments of `scanner`."""
        if self._both(options.get("filter", arguments[1] if len(arguments) > 1 else None)) is None:
            most = integer("num_rows", num_rows, 0)
            return self._scanner(*arguments, limit=most, **options).to_table()
        return self.scanner(*arguments, **options).head(num_rows)

    def take(self, indices: object, *arguments: Any, **options: Any) -> pa.Table:
        """Returns rows by their number in the order of the scan. Reads all rows."""
        return self.to_table(*arguments, **options).take(indices)

    def filter(self, expression: pc.Expression) -> ScanDataset:
        """Returns a dataset of the messages that match."""
        return ScanDataset(self.scan, self._both(expression))

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        """Raises an error: a scan has the columns and types of its messages."""
        raise ArgumentError(f"schema: expected {self.schema.names}, got {schema.names}: cast what to_table() returns")

    def sort_by(self, sorting: object, **_: Any) -> NoReturn:
        """Raises an error that names the way to sort."""
        raise ArgumentError(f"sort_by: expected a table, got a scan: write to_table().sort_by({sorting!r}), or use SQL")

    def join(self, *_: Any, **__: Any) -> NoReturn:
        """Raises an error that names the way to join."""
        raise ArgumentError("join: expected a table, got a scan: write to_table().join(…), or use SQL")

    def join_asof(self, *_: Any, **__: Any) -> NoReturn:
        """Raises an error that names the way to join."""
        raise ArgumentError("join_asof: expected a table, got a scan: write to_table().join_asof(…), or use SQL")

    def _both(self, condition: pc.Expression | None) -> pc.Expression | None:
        if condition is not None and not isinstance(condition, pc.Expression):
            raise ArgumentError(f"filter: expected an expression, as field('tags') == 'paid', got {condition!r}")
        if self._condition is None or condition is None:
            return self._condition if condition is None else condition
        return self._condition & condition

    def _narrowed_scan(
        self,
        columns: Sequence[str] | Mapping[str, pc.Expression] | None,
        condition: pc.Expression | None,
        limit: int | None = None,
    ) -> Scan:
        expressions = list(columns.values()) if isinstance(columns, Mapping) else []
        wanted = set(self.schema.names) if columns is None else set() if isinstance(columns, Mapping) else set(columns)
        for expression in [*expressions, *([] if condition is None else [condition])]:
            wanted |= self._columns_of(expression)
        names = [name for name in self.schema.names if name in wanted]
        return self.scan.narrow(names, None if condition is None else _substrait(condition, self.scan), limit=limit)

    def _columns_of(self, expression: pc.Expression) -> set[str]:
        """Returns the columns that an expression may refer to, perhaps with others whose names its text has."""
        text = str(expression)
        if "FieldPath(" in text:
            # a column by its number
            return set(self.schema.names)
        return set(re.findall(r"\w+", text)) & set(self.schema.names)


#: Options of pyarrow's scanners that are about files, and change nothing here.
_FILE_OPTIONS = frozenset({"cache_metadata", "fragment_scan_options"})
_SCANNER_OPTIONS = frozenset({"batch_size", "batch_readahead", "fragment_readahead", "use_threads", "memory_pool"})


def _substrait(condition: pc.Expression, scan: Scan) -> bytes | None:
    """Returns an expression in Substrait's form. None if it has none, or if that would be too large or wrong."""
    text = str(condition)
    # Substrait counts microseconds, which pyarrow lets overflow; it prints such a time so
    if "<value out of range" in text:
        return None
    level, deepest = 0, 0
    # parentheses in values would look like levels that end
    for character in re.sub(r"[^()]", "", _VALUES.sub("", text)):
        level += 1 if character == "(" else -1
        deepest = max(deepest, level)
    if deepest > _MOST_LEVELS:
        return None
    try:
        return bytes(condition.to_substrait(scan.schema))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # an expression that Substrait cannot represent; pyarrow applies it, or raises what is wrong with it
        return None
