"""What a task does with its piece of topics, in a Python worker of an executor: pull, hand out batches."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rmqfast._native import RangeReader, TopicRead
from rmqfast.extras import import_extra
from rmqfast.spark.garbage import freeze_imports_once
from rmqfast.spark.zips import read_directories_once

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_numbered_topic", "read_topic_piece"]

_LOG = logging.getLogger("rmqfast.spark")


def read_topic_piece(read: TopicRead, piece: bytes) -> Iterator[pa.RecordBatch]:
    """Yields the batches of one piece; a task that is tried again gets the same rows.

    Args:
        read: What is read.
        piece: One of `read.plan()`.

    Raises:
        DataLossError: Messages are not there any more, unless `failOnDataLoss` is false.
        ClientError: A broker refuses, or does not answer for as long as `retryTimeoutMs` says.

    Source: `DefaultLitePullConsumerImpl.PullTaskImpl`.
    """
    # both before the first batch: they pay off from the second task of a worker on
    read_directories_once()
    freeze_imports_once()
    # opened here, in the worker: a connection cannot be pickled
    reader = RangeReader.of_piece(read, piece)
    began = time.monotonic()
    # it closes the reader also where Spark takes no more, as with LIMIT
    yield from batches_of(reader)
    seconds = time.monotonic() - began
    _LOG.info("%s: %d rows, %d bytes of records, %.3f s", reader.name, reader.rows, reader.size, seconds)


def batches_of(reader: RangeReader) -> Iterator[pa.RecordBatch]:
    """Yields the batches of a reader, and closes it."""
    pa = import_extra("pyarrow", "arrow")
    try:
        while (batch := reader.next_batch()) is not None:
            yield pa.record_batch(batch)
    finally:
        reader.close()


def read_numbered_topic(
    read: TopicRead, pieces: Sequence[bytes], numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yields the batches of the pieces whose numbers come, as a function for `mapInArrow`.

    Args:
        read: What is read.
        pieces: All of them.
        numbers: Batches whose first column has positions in `pieces`.

    Raises:
        RmqError: As `read_topic_piece`.

    Source: `read_topic_piece`.
    """
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield from read_topic_piece(read, pieces[number])
