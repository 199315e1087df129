"""A piece of a dataset, with the methods of a fragment of pyarrow that engines call.

Source: `pyarrow.dataset.Fragment`, of which DataFusion asks a scanner in each of its threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

from rmqfast.store.exit_gate import GATE

if TYPE_CHECKING:
    from rmqfast.store.dataset import ScanDataset


class Fragment:
    """One piece of a dataset."""

    def __init__(self, dataset: ScanDataset) -> None:
        self._dataset = dataset

    @property
    def partition_expression(self) -> pc.Expression:
        return self._dataset.partition_expression

    @property
    def physical_schema(self) -> pa.Schema:
        return self._dataset.schema

    def scanner(self, schema: pa.Schema | None = None, **options: Any) -> FragmentScanner:
        del schema
        # never ended: an engine may drop a fragment without a word, and ask for others
        GATE.begin()
        with GATE.call() as is_open:
            dataset = self._dataset
            if not is_open:
                dataset = type(dataset)(dataset.scan.limit(0))
            return FragmentScanner(dataset.scanner(**options))

    def to_table(self, schema: pa.Schema | None = None, **options: Any) -> pa.Table:
        return self.scanner(schema, **options).to_table()

    def to_batches(self, schema: pa.Schema | None = None, **options: Any) -> Iterator[pa.RecordBatch]:
        return self.scanner(schema, **options).to_batches()

    def count_rows(self, **options: Any) -> int:
        return self._dataset.count_rows(**options)

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        return self._dataset.head(num_rows, **options)


class FragmentScanner:
    """A scanner whose batches a thread of another library may read until the interpreter ends."""

    def __init__(self, scanner: pyarrow.dataset.Scanner) -> None:
        self._scanner = scanner

    @property
    def projected_schema(self) -> pa.Schema:
        return self._scanner.projected_schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        return FragmentBatches(self._scanner.to_reader())

    def to_reader(self) -> pa.RecordBatchReader:
        return self._scanner.to_reader()

    def to_table(self) -> pa.Table:
        return self._scanner.to_table()

    def head(self, num_rows: int) -> pa.Table:
        return self._scanner.head(num_rows)

    def count_rows(self) -> int:
        return int(self._scanner.count_rows())


class FragmentBatches:
    """An iterator over batches, which ends when the interpreter does."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self._reader = reader

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        with GATE.call() as is_open:
            if not is_open:
                raise StopIteration
            return self._reader.read_next_batch()
