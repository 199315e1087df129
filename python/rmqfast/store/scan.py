"""A scan: an Arrow stream that starts again for each reader. Has shortcuts for pyarrow, pandas and Polars."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import fields
from typing import TYPE_CHECKING

from rmqfast import _native
from rmqfast.extras import import_extra
from rmqfast.html import facts
from rmqfast.message import Damage
from rmqfast.pickling import not_picklable
from rmqfast.store.damage_warning import CallerLine, describe
from rmqfast.store.request import ScanRequest

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


@not_picklable("open the store where it is used, and scan there, or take to_arrow()")
class Scan:
    """Messages of a store as a stream of Arrow record batches. Each iteration reads the messages again.

    Anything with the Arrow PyCapsule interface can read it: `pyarrow.RecordBatchReader.from_stream(scan)`,
    `polars.DataFrame(scan)`, `duckdb.sql("from scan")`. Memory is bounded by the batch size.

    If bytes were damaged, the reader gets a `DamageWarning` at the end, or an error if `MessageStore.scan` was called
    with `on_damage="fail"`. A library that reads the Arrow C stream raises its own error with the same message.

    Example:
        >>> import rmqfast
        >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
        >>> scan = store.scan("fx_q1", columns=["queue_offset"])
        >>> scan.to_arrow().num_rows, scan.to_arrow().num_rows
        (1259, 1259)
    """

    def __init__(self, start: Callable[[], _native.Scan], request: ScanRequest) -> None:
        self._start, self._request = start, request
        # captured now: a stream may be read on another thread
        self._line = CallerLine()
        # starts now, so that an invalid request raises here and not at the first batch
        self._latest = start()
        self._is_taken = False

    def _repr_html_(self) -> str:
        chosen = {
            field.name: value
            for field in fields(ScanRequest)
            if (value := getattr(self._request, field.name)) != field.default
        }
        return facts("Scan", chosen | {"damage": len(self.damage)})

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        # the requested schema is ignored: the interface allows it, and the consumer converts
        del requested_schema
        reading, line = self._reading(), CallerLine(self._line)
        return reading.stream(lambda: _warn_of_damage(reading, line))

    def __arrow_c_schema__(self) -> object:
        return self._latest.__arrow_c_schema__()

    @property
    def damage(self) -> list[Damage]:
        """The damage that the latest read has found so far, at most 10,000 entries."""
        return [Damage(*entry) for entry in self._latest.damage[0]]

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """Yields pyarrow record batches.

        Raises:
            MissingExtraError: pyarrow is not installed.
            StoreError: The store is closed or cannot be read.
            CorruptError: Damage was found, with `on_damage="fail"`.

        Warns:
            DamageWarning: Some bytes were damaged.
        """
        pa = import_extra("pyarrow", "arrow")
        reading = self._reading()
        try:
            while (batch := reading.next_batch()) is not None:
                yield pa.record_batch(batch)
        finally:
            # also when the caller stops early
            _warn_of_damage(reading, CallerLine(self._line))

    def to_arrow(self) -> pa.Table:
        """Returns all rows as a pyarrow table."""
        pa = import_extra("pyarrow", "arrow")
        return pa.Table.from_batches(self.batches(), schema=pa.schema(self))

    def to_pandas(self) -> pd.DataFrame:
        """Returns all rows as a pandas data frame. `body` contains bytes, `properties` lists of pairs."""
        import_extra("pandas", "pandas")
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> pl.DataFrame:
        """Returns all rows as a Polars data frame."""
        polars = import_extra("polars", "polars")
        frame: pl.DataFrame = polars.DataFrame(self)
        return frame

    def _reading(self) -> _native.Scan:
        """Returns the read that the constructor has started. Later calls start a new read."""
        if self._is_taken:
            self._latest = self._start()
        self._is_taken = True
        return self._latest


def _warn_of_damage(reading: _native.Scan, line: CallerLine) -> None:
    entries, more = reading.damage
    if entries and not reading.fails_on_damage:
        line.warn(f"{describe(entries, more)}; Scan.damage lists them")
