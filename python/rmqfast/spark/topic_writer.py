"""PySpark's writers of batches and streams. They send rows, or Arrow batches from PySpark 4.1 on."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter, WriterCommitMessage

from rmqfast._native import TopicSink, Written
from rmqfast.errors import ArgumentError
from rmqfast.spark.sink import check_topic, send_partition, sink_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Row
    from pyspark.sql.types import StructType


_ROWS = 4096


def row_batches(rows: Iterable[Row], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yields the columns of rows as batches, with the types that a sink accepts."""
    import pyarrow as pa

    left = iter(rows)
    while taken := list(islice(left, _ROWS)):
        arrays = [_array(name, [row[name] for row in taken]) for name in columns]
        yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _array(name: str, values: list[Any]) -> pa.Array:
    import pyarrow as pa

    if name == "body":  # strings are stored as UTF-8
        return pa.array([value.encode() if isinstance(value, str) else value for value in values], pa.binary())
    if name == "properties":
        # pyarrow takes pairs for a map; a dictionary would be a struct.
        pairs = (None if value is None else list(value.items()) for value in values)
        return pa.array(pairs, pa.map_(pa.string(), pa.string()))
    if name == "keys" and any(isinstance(value, list) for value in values):
        return pa.array(values, pa.list_(pa.string()))
    # Explicit, since Arrow cannot guess the type of a batch that is all null.
    return pa.array(values, pa.int64() if name in {"queue_id", "delay_level", "flag"} else pa.string())


_LOG = logging.getLogger("rmqfast.spark")


def topic_writer(options: dict[str, str], schema: StructType, *, overwrite: bool) -> DataSourceArrowWriter:
    """Returns the writer of `DataFrame.write`. Checks options, columns and topic first.

    `overwrite` is refused with `ArgumentError`, since a topic cannot be overwritten.
    """
    sink = _sink(options, schema, overwrite=overwrite)
    check_topic(sink)
    return _BatchWriter(sink)


def stream_writer(options: dict[str, str], schema: StructType, *, overwrite: bool) -> DataSourceStreamWriter:
    """Returns the writer of `DataFrame.writeStream`. Whether the topic exists is checked by the tasks.

    `overwrite`, the output mode `complete`, is refused with `ArgumentError`.
    """
    return _StreamWriter(_sink(options, schema, overwrite=overwrite))


@dataclass
class WrittenPartition(WriterCommitMessage):
    """The counts of a task, which Spark sends to the driver."""

    written: Written


class _BatchWriter(DataSourceArrowWriter):
    def __init__(self, sink: TopicSink) -> None:
        self._sink = sink

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return WrittenPartition(send_partition(self._sink, iterator))

    def commit(self, messages: Sequence[Any]) -> None:
        _tell(self._sink, messages, "")

    def abort(self, messages: Sequence[Any]) -> None:
        """Logs how many rows a failed job has sent. They stay in the topic."""
        _tell_aborted(self._sink, messages, "")


class _StreamWriting:
    def __init__(self, sink: TopicSink) -> None:
        self._sink = sink

    def commit(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803  # Spark's name
        _tell(self._sink, messages, f"batch {batchId}, ")

    def abort(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803  # Spark's name
        """Logs how many rows a failed micro-batch has sent. They stay in the topic and will be sent again."""
        _tell_aborted(self._sink, messages, f"batch {batchId}, ")


if hasattr(datasource, "DataSourceStreamArrowWriter"):  # PySpark 4.1 and newer

    class _StreamWriter(_StreamWriting, datasource.DataSourceStreamArrowWriter):
        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
            return WrittenPartition(send_partition(self._sink, iterator))

else:

    class _StreamWriter(_StreamWriting, DataSourceStreamWriter):  # type: ignore[no-redef]
        def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
            return WrittenPartition(send_partition(self._sink, row_batches(iterator, self._sink.columns)))


def _sink(options: dict[str, str], schema: StructType, *, overwrite: bool) -> TopicSink:
    if overwrite:
        raise ArgumentError("mode: expected append, got overwrite or complete: what a topic holds stays")
    return sink_of(options, schema)


def _tell(sink: TopicSink, messages: Sequence[WrittenPartition | None], which: str) -> None:
    _log_to_stderr()
    _LOG.info("%stopic %s: %s", which, sink.topic or "of each row", _sum(messages))


def _tell_aborted(sink: TopicSink, messages: Sequence[WrittenPartition | None], which: str) -> None:
    _log_to_stderr()
    what = "the job failed; its tasks that ended well sent"
    _LOG.warning("%stopic %s: %s %s, which stay", which, sink.topic or "of each row", what, _sum(messages))


def _sum(messages: Sequence[WrittenPartition | None]) -> Written:
    # A failed task has None instead of a message.
    return Written.total([message.written for message in messages if message is not None])


def _log_to_stderr() -> None:
    """Configures logging in the Python process in which Spark commits a write. Spark does so itself from 4.1 on."""
    root = logging.getLogger()
    # Keep any existing configuration.
    if root.handlers or _LOG.handlers:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    _LOG.addHandler(handler)
    _LOG.setLevel(logging.INFO)
