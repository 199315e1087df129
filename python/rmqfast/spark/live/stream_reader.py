"""The stream reader of PySpark; Rust decides the batches.

Source: `DataSourceStreamReader`, `ReadLimit` of PySpark.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from rmqfast._native import SparkStream

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["StreamReader", "StreamSource", "bytes_limit", "offsets_limit"]

_LOG = logging.getLogger("rmqfast.spark")

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as AvailableNow
except ImportError:  # before 4.2: Spark takes all there is in one batch
    AvailableNow: Final = object  # type: ignore[misc,assignment]


class StreamSource(Protocol):
    """The source of a stream, pickled to the workers."""

    def open(self) -> SparkStream:
        """The stream as its driver asks it."""

    def default_limit(self) -> Any:
        """PySpark's `ReadLimit` of a batch."""

    def unheard_limits(self) -> str | None:
        """The limits that are set, and "need", for a warning where PySpark does not tell whether they hold."""

    def read(self, piece: bytes) -> Iterator[pa.RecordBatch]:
        """The batches of a task."""


class StreamReader(DataSourceStreamReader, AvailableNow):
    """Offsets are dicts here, and the texts of them in Rust.

    Args:
        source: What is read.
    """

    def __init__(self, source: StreamSource) -> None:
        self._source = source
        self._native: SparkStream | None = None
        # where the stream is, for PySpark before 4.2, which does not say it
        self._at: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without connections: PySpark pickles the reader to each task, which has its own."""
        return {**self.__dict__, "_native": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Start offsets of a stream without a checkpoint."""
        return self._offset(self._stream().initial())

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """End offsets of the next batch.

        PySpark before 4.2 does not say where the stream is, nor whether the trigger wants all there is: it gets all.
        """
        limits = self._source.unheard_limits()
        if start is None and limits is not None:
            _LOG.warning("%s PySpark 4.2: a batch takes all there is", limits)
        # PySpark from 4.2 on tells; it chooses that by the number of parameters, which defaults do not change
        at = self._at if start is None else json.dumps(start)
        return self._offset(self._stream().latest(at, is_limited=start is not None and not _is_unlimited(limit)))

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """PySpark's `ReadLimit` of a batch."""
        return self._source.default_limit()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The stream ends with what there is now."""
        self._stream().aim()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """The last known end of the source, for the progress of the query."""
        text = self._stream().report()
        return None if text is None else json.loads(text)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """A task each."""
        # a restart from a checkpoint asks for the tasks of the last batch first
        self._at = json.dumps(end)
        return [InputPartition(piece) for piece in self._stream().pieces(json.dumps(start), self._at)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Batches of one partition; where there is none, it is None or has None."""
        if partition is not None and partition.value is not None:
            yield from self._source.read(partition.value)

    def commit(self, end: dict[str, Any]) -> None:
        """Spark will not ask for what is before `end` any more."""
        self._stream().commit(json.dumps(end))

    def stop(self) -> None:
        """The query ended."""
        native, self._native = self._native, None
        if native is not None:
            native.close()

    def _stream(self) -> SparkStream:
        if self._native is None:
            self._native = self._source.open()
        return self._native

    def _offset(self, text: str) -> dict[str, Any]:
        self._at = text
        offset: dict[str, Any] = json.loads(text)
        return offset


def offsets_limit(most: int | None, least: int | None) -> Any:
    """PySpark's `ReadLimit` for a number of messages."""
    from pyspark.sql.streaming import datasource

    # Spark has no limit of both kinds: it is told one of them, the stream holds both
    if most is not None:
        return datasource.ReadMaxRows(most)
    return datasource.ReadAllAvailable() if least is None else datasource.ReadMinRows(least)


def bytes_limit(most: int | None) -> Any:
    """PySpark's `ReadLimit` for a number of bytes."""
    from pyspark.sql.streaming import datasource

    return datasource.ReadAllAvailable() if most is None else datasource.ReadMaxBytes(most)


def _is_unlimited(limit: Any) -> bool:
    # by name: PySpark before 4.2 has no such class to compare with
    return type(limit).__name__ == "ReadAllAvailable"
