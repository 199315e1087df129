"""A scan: an Arrow stream that starts anew for each reader, and its shortcuts to the libraries that read one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from rmqfast import _native
from rmqfast.errors import DamageWarning, MissingExtraError
from rmqfast.html import facts
from rmqfast.message import Damage
from rmqfast.pickling import not_picklable
from rmqfast.store.request import ScanRequest

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

__all__ = ["Scan", "imported"]


@not_picklable("open the store where it is used, and scan there, or take to_arrow()")
class Scan:
    """Messages of a store as a stream of Arrow record batches. Each reading starts anew.

    Anything that knows the Arrow PyCapsule interface reads it: `pyarrow.RecordBatchReader.from_stream(scan)`,
    `polars.DataFrame(scan)`, `duckdb.sql("from scan")`. Memory is bounded by the batch size.

    Example:
        >>> import rmqfast
        >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
        >>> scan = store.scan("fx_q1", columns=["queue_offset"])
        >>> scan.to_arrow().num_rows, scan.to_arrow().num_rows
        (1259, 1259)
    """

    def __init__(self, start: Callable[[], _native.Scan], request: ScanRequest) -> None:
        self._start, self._request = start, request
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
        return self._reading().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The Arrow C schema of the batches."""
        return self._latest.__arrow_c_schema__()

    @property
    def damage(self) -> list[Damage]:
        """What the latest reading could not use so far, at most 10,000 entries."""
        return [Damage(*entry) for entry in self._latest.damage[0]]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields pyarrow record batches.

        Raises:
            MissingExtraError: pyarrow is not installed.
            StoreError: The store cannot be read.
        """
        pa = imported("pyarrow", "arrow")
        reading = self._reading()
        while (batch := reading.next_batch()) is not None:
            yield pa.record_batch(batch)
        _warn_of_damage(reading)

    def to_arrow(self) -> pa.Table:
        """All rows as a pyarrow table."""
        pa = imported("pyarrow", "arrow")
        return pa.Table.from_batches(self.batches(), schema=pa.schema(self))

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a pandas data frame; `body` holds bytes, `properties` lists of pairs."""
        imported("pandas", "pandas")
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> pl.DataFrame:
        """All rows as a Polars data frame."""
        polars = imported("polars", "polars")
        frame: pl.DataFrame = polars.DataFrame(self)
        _warn_of_damage(self._latest)
        return frame

    def _reading(self) -> _native.Scan:
        """The scan that was started when this was made, once; then new ones."""
        if self._is_taken:
            self._latest = self._start()
        self._is_taken = True
        return self._latest


def _warn_of_damage(reading: _native.Scan) -> None:
    entries, more = reading.damage
    if entries:
        first = Damage(*entries[0])
        text = f"{len(entries) + more} damaged places, the first in {first.file} at offset {first.offset}: "
        warnings.warn(f"{text}{first.reason}; Scan.damage lists them", DamageWarning, stacklevel=3)


def imported(module: str, extra: str) -> Any:
    """A library that an extra brings.

    Raises:
        MissingExtraError: It is not installed.

    Example:
        >>> imported("pyarrow", "arrow").__name__
        'pyarrow'
    """
    try:
        return __import__(module)
    except ImportError:
        raise MissingExtraError(f"{module} is needed for this: pip install 'rmqfast[{extra}]'", name=module) from None
