"""A scan: an Arrow stream that starts anew for each reader, and its shortcuts to the libraries that read one."""

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

__all__ = ["Scan"]


@not_picklable("open the store where it is used, and scan there, or take to_arrow()")
class Scan:
    """Messages of a store as a stream of Arrow record batches. Each iteration starts a new read.

    Anything that knows the Arrow PyCapsule interface reads it: `pyarrow.RecordBatchReader.from_stream(scan)`,
    `polars.DataFrame(scan)`, `duckdb.sql("from scan")`. Memory is bounded by the batch size.

    Whoever reads it gets a `DamageWarning` when the reading ends and bytes on the way could not be used, or an error,
    if `MessageStore.scan` was called with `on_damage="fail"`. Through the Arrow C stream the error is one of the
    library that reads it, with the same words.

    Example:
        >>> import rmqfast
        >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
        >>> scan = store.scan("fx_q1", columns=["queue_offset"])
        >>> scan.to_arrow().num_rows, scan.to_arrow().num_rows
        (1259, 1259)
    """

    def __init__(self, start: Callable[[], _native.Scan], request: ScanRequest) -> None:
        self._start, self._request = start, request
        self._line = CallerLine()
        self._latest = start()  # at once: who asks for what cannot be read hears of it where he asked
        self._is_taken = False

    def _repr_html_(self) -> str:
        chosen = {
            field.name: value
            for field in fields(ScanRequest)
            if (value := getattr(self._request, field.name)) != field.default
        }
        return facts("Scan", chosen | {"damage": len(self.damage)})

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow C stream of a new reading."""
        # a consumer that asks for another schema converts the rows itself, as the interface allows
        del requested_schema
        reading, line = self._reading(), CallerLine(self._line)
        return reading.stream(lambda: _warn_of_damage(reading, line))

    def __arrow_c_schema__(self) -> object:
        """The Arrow C schema of the batches."""
        return self._latest.__arrow_c_schema__()

    @property
    def damage(self) -> list[Damage]:
        """Damage that the latest read met so far, at most 10,000 entries."""
        return [Damage(*entry) for entry in self._latest.damage[0]]

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """Yields pyarrow record batches.

        Raises:
            MissingExtraError: pyarrow is not installed.
            StoreError: The store cannot be read, or is closed.
            CorruptError: There is damage, with `on_damage="fail"`.

        Warns:
            DamageWarning: Bytes on the way could not be used.
        """
        pa = import_extra("pyarrow", "arrow")
        reading = self._reading()
        try:
            while (batch := reading.next_batch()) is not None:
                yield pa.record_batch(batch)
        finally:  # also where whoever reads has enough
            _warn_of_damage(reading, CallerLine(self._line))

    def to_arrow(self) -> pa.Table:
        """All rows as a pyarrow table."""
        pa = import_extra("pyarrow", "arrow")
        return pa.Table.from_batches(self.batches(), schema=pa.schema(self))

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a pandas data frame; `body` holds bytes, `properties` lists of pairs."""
        import_extra("pandas", "pandas")
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> pl.DataFrame:
        """All rows as a Polars data frame."""
        polars = import_extra("polars", "polars")
        frame: pl.DataFrame = polars.DataFrame(self)
        return frame

    def _reading(self) -> _native.Scan:
        """The read that began with this object, once; then new ones."""
        if self._is_taken:
            self._latest = self._start()
        self._is_taken = True
        return self._latest


def _warn_of_damage(reading: _native.Scan, line: CallerLine) -> None:
    entries, more = reading.damage
    if entries and not reading.fails_on_damage:
        line.warn(f"{describe(entries, more)}; Scan.damage lists them")
