"""A scan: messages as an Arrow stream that starts again for each reader, a table for SQL, and a lazy frame."""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from rmqfast import _native
from rmqfast.arguments import Number, integer
from rmqfast.extras import import_extra
from rmqfast.html import facts
from rmqfast.message import BadBody, Damage
from rmqfast.store.damage_warning import CallerLine, describe
from rmqfast.store.decode import VALUE, bad_bodies, describe_bad_bodies, is_decoded, warn_of_bad_bodies
from rmqfast.store.request import ScanRequest
from rmqfast.store.scan_source import ScanSource

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from rmqfast.store.dataset import ScanDataset
    from rmqfast.store.explanation import ScanExplanation


_LOG = logging.getLogger("rmqfast.client.ranges")


class Scan:
    """Messages as a stream of Arrow record batches. Each iteration reads the messages again.

    Anything with the Arrow PyCapsule interface can read it: `pyarrow.RecordBatchReader.from_stream(scan)`,
    `polars.DataFrame(scan)`, `duckdb.sql("from scan")`. Memory is bounded by the batch size. `dataset` and `lazy` read
    only the columns and messages that a query asks for.

    A scan is a value: it can be pickled for another process, which opens the store by its path and reads the messages
    that the store had when the scan was pickled.

    If bytes were damaged, the reader gets a `DamageWarning` at the end, or an error if `MessageStore.scan` was called
    with `on_damage="fail"`. A library that reads the Arrow C stream raises its own error with the same message.

    Example:
        >>> import rmqfast
        >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
        >>> scan = store.scan("fx_q1", columns=["queue_offset"])
        >>> scan.to_arrow().num_rows, scan.to_arrow().num_rows
        (1259, 1259)
    """

    def __init__(
        self,
        source: ScanSource,
        request: ScanRequest,
        *,
        limit: int | None = None,
        origin: Scan | None = None,
        is_part: bool = False,
    ) -> None:
        self._source, self._request, self._limit = source, request, limit
        # the scan that lists damage which a query of it meets, in parts or as a whole
        self._origin, self._is_part = origin, is_part
        # captured now: a stream may be read on another thread
        self._line: CallerLine = CallerLine(None if origin is None else origin._line)  # noqa: SLF001 - of this class
        # starts now, so that an invalid request raises here and not at the first batch
        self._started = source.start(request, limit)
        # a list, because one of several threads takes it
        self._unread = [self._started]
        self._latest: tuple[_native.Scan, ...] = (self._started,)

    def __reduce__(self) -> tuple[object, ...]:
        return _scan_of, (self._source.fix_messages(self._request), self._request, self._limit)

    def _repr_html_(self) -> str:
        chosen = {
            field.name: value
            for field in fields(ScanRequest)
            if (value := getattr(self._request, field.name)) != field.default
        }
        limit = {} if self._limit is None else {"limit": self._limit}
        return facts("Scan", chosen | limit | {"damage": len(self.damage)})

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        # the requested schema is ignored: the interface allows it, and the consumer converts
        del requested_schema
        reading, line = self._reading(), CallerLine(self._line)
        return reading.stream(lambda: _warn_of_damage(reading, line))

    def __arrow_c_schema__(self) -> object:
        return self._started.__arrow_c_schema__()

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types, as a pyarrow schema."""
        schema: pa.Schema = import_extra("pyarrow", "arrow").schema(self)
        return schema

    @property
    def request(self) -> ScanRequest:
        """The messages and columns that the scan reads."""
        return self._request

    @property
    def damage(self) -> list[Damage]:
        """The damage that the latest read or query has found so far, at most 10,000 entries of each piece."""
        return [Damage(*entry) for reading in self._latest for entry in reading.damage[0]]

    @property
    def decode_errors(self) -> list[BadBody]:
        """The bodies that the latest read could not decode so far, at most 100 of a piece. The warning counts all."""
        return [body for reading in self._latest for body in bad_bodies(reading)]

    @property
    def decode_report(self) -> str | None:
        """The text of the `DecodeWarning` of the latest read so far. None if all bodies could be decoded."""
        reports = (describe_bad_bodies(reading) for reading in self._latest)
        return "; ".join(report for report in reports if report is not None) or None

    @property
    def losses(self) -> list[str]:
        """The messages of a cluster that the latest read has missed so far, at most 1,000 entries of a piece."""
        return [loss for reading in self._latest for loss in reading.warnings[0][0]]

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """Yields pyarrow record batches.

        Give libraries the scan itself, and not this generator: a process that ends while one of their threads runs
        Python code hangs or aborts, as with `pyarrow.dataset.Scanner.from_batches(scan.batches())` and a limit.

        Raises:
            MissingExtraError: pyarrow is not installed.
            StoreError: The store is closed or cannot be read.
            CorruptError: Damage was found, with `on_damage="fail"`.
            DecodeError: A body cannot be decoded, with `on_error="fail"`.

        Warns:
            DamageWarning: Some bytes were damaged.
            DecodeWarning: Some bodies could not be decoded.
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

    def limit(self, rows: Number) -> Scan:
        """Returns a scan of the first rows. With several threads, of any rows.

        Args:
            rows: Maximum number of rows. A scan that has a limit keeps the smaller one.

        Raises:
            ArgumentError: `rows` is negative.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> store.scan("fx_q1", columns=["queue_offset"]).limit(2).to_arrow().to_pydict()
            {'queue_offset': [0, 1]}
        """
        most = integer("rows", rows, 0)
        most = most if self._limit is None else min(most, self._limit)
        return Scan(self._source, _of_few_rows(self._request, most), limit=most)

    def head(self, rows: Number = 5) -> pa.Table:
        """Returns the first rows as a pyarrow table. See `limit`."""
        return self.limit(rows).to_arrow()

    def count(self) -> int:
        """Returns the number of messages.

        Consume queues decide it if the scan filters by topic, queue and offset only; a damaged record that a queue
        lists is then counted. Otherwise the messages are read, without any column.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> store.scan("fx_q1").count(), store.scan("fx_q1", tags="TagA").count()
            (1259, 105)
        """
        count = self._source.count(self._request)
        if count is not None:
            return count if self._limit is None else min(count, self._limit)
        reading, rows = self._source.start(replace(self._request, columns=()), self._limit), 0
        self._latest = (reading,)
        try:
            while (batch := reading.next_batch()) is not None:
                rows += batch.num_rows
        finally:
            _warn_of_damage(reading, CallerLine(self._line))
        return rows

    def explain(self) -> ScanExplanation:
        """Tells what the scan reads: how many messages, bytes and reads, in which way and why. Reads no message.

        Figures that are not known before the reading are bounds, and are called so: "at most". A scan of a store that
        is open for appending is explained for the messages that the store has now.

        Raises:
            StoreError: The store is closed or cannot be read.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> explanation = store.scan("fx_q1", columns=["tags"]).explain()
            >>> explanation.messages, explanation.messages_are
            (1259, 'exact')
            >>> [used.name for used in explanation.filters]
            ['topic']
        """
        return self._source.explain(self._request, self._limit)

    def dataset(self) -> ScanDataset:
        """Returns the scan as a table for SQL: a `pyarrow.dataset.Dataset` of which a query reads what it asks for.

        DuckDB, DataFusion, Polars (`scan_pyarrow_dataset`), Ibis, narwhals and pyarrow pass the columns and filters of
        a query. Filters by tag, queue, offset, store time and topic narrow the scan.

        Raises:
            MissingExtraError: pyarrow is not installed.

        Example:
            >>> import duckdb, rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> messages = store.scan("fx_q1").dataset()
            >>> duckdb.sql("select count(*) from messages where tags = 'TagA'").fetchall()
            [(105,)]
        """
        import_extra("pyarrow", "arrow")
        from rmqfast.store.dataset import ScanDataset

        return ScanDataset(self)

    def lazy(self) -> pl.LazyFrame:
        """Returns the scan as a Polars LazyFrame, whose queries read the columns, messages and rows that they ask for.

        Raises:
            MissingExtraError: Polars is not installed.

        Example:
            >>> import polars as pl, rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> frame = store.scan("fx_q1").lazy()
            >>> frame.filter(pl.col("tags") == "TagA").select(pl.len()).collect().item()
            105
        """
        import_extra("polars", "polars")
        from rmqfast.store.lazy_frame import lazy_frame

        return lazy_frame(self)

    def narrow(self, columns: Sequence[str] | None, predicate: object = None, *, limit: int | None = None) -> Scan:
        """Returns a scan of some columns that leaves out messages which surely do not match a predicate.

        Args:
            columns: Names of columns. None: those of this scan.
            predicate: Bytes of Substrait, or a tree of filters, as `implied_filters` of the extension understands them.
            limit: Maximum number of rows, before the predicate is applied.
        """
        source = self._source
        request = self._request if columns is None else replace(self._request, columns=self._own_columns(columns))
        # a limit counts rows before any predicate
        if predicate is not None and self._limit is None:
            source, request = source.narrow(request, predicate)
        most = min((each for each in (self._limit, limit) if each is not None), default=None)
        request, origin = _of_few_rows(request, most), self._origin or self
        return Scan(source, request, limit=most, origin=origin, is_part=self._is_part)

    def _own_columns(self, names: Sequence[str]) -> list[str]:
        """Returns the columns of the request with these names. The column `value` keeps the fields that it has."""
        fields = [column for column in self._request.columns or () if is_decoded(column)]
        return [column for name in names for column in (fields if fields and name == VALUE else [name])]

    def parts(self) -> list[Scan]:
        """Returns scans that can be read independently of each other; together they have each message once."""
        if self._limit is not None:
            return [self]
        origin = self._origin or self
        origin._latest = ()  # noqa: SLF001 - as above
        parts = self._source.parts(self._request)
        return [Scan(part, self._request, origin=origin, is_part=True) for part in parts]

    def _reading(self) -> _native.Scan:
        """Returns the read that the constructor has started. Later calls start a new read."""
        try:
            reading = self._unread.pop()
        except IndexError:
            reading = self._source.start(self._request, self._limit)
        self._latest = (reading,)
        if (origin := self._origin) is not None:
            # pieces are read side by side, and all of them are the query
            latest = origin._latest if self._is_part else ()  # noqa: SLF001 - as above
            origin._latest = (*latest, reading)  # noqa: SLF001 - as above
        return reading


def _of_few_rows(request: ScanRequest, limit: int | None) -> ScanRequest:
    """Returns a request that makes no batch of more rows than a limit takes."""
    most = request.batch_rows if limit is None else max(1, min(limit, request.batch_rows))
    return replace(request, batch_rows=most)


def _warn_of_damage(reading: _native.Scan, line: CallerLine) -> None:
    entries, more = reading.damage
    if entries and not reading.fails_on_damage:
        line.warn(f"{describe(entries, more)}; Scan.damage lists them")
    (losses, more_losses), (troubles, more_troubles) = reading.warnings
    for trouble in troubles:
        _LOG.warning("%s", trouble)
    if more_troubles:
        _LOG.warning("%d further warnings of this read are not shown", more_troubles)
    if losses:
        count = len(losses) + more_losses
        line.warn(losses[0] if count == 1 else f"{count} losses, the first: {losses[0]}")
    warn_of_bad_bodies(reading, line)


def _scan_of(source: ScanSource, request: ScanRequest, limit: int | None) -> Scan:
    return Scan(source, request, limit=limit)
