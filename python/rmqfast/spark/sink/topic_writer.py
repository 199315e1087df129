"""The writers of the data source `rocketmq`: for a batch, and for the micro-batches of a stream."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter, WriterCommitMessage

from rmqfast._native import TopicSink, Written
from rmqfast.errors import ArgumentError
from rmqfast.spark.sink.row_batches import row_batches
from rmqfast.spark.sink.task import check_topic, send_partition, sink_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Row
    from pyspark.sql.types import StructType

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
