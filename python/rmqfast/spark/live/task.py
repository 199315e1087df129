"""Tasks of a topic read in a Python worker. A task pulls a piece and yields batches.

Source: `DefaultLitePullConsumerImpl.PullTaskImpl`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rmqfast._native import RangeReader, TopicRead
from rmqfast.extras import import_extra
from rmqfast.spark.task import freeze_imports_once

if TYPE_CHECKING:
    import pyarrow as pa

_LOG = logging.getLogger("rmqfast.spark")


def read_topic_piece(read: TopicRead, piece: bytes) -> Iterator[pa.RecordBatch]:
    """Yields the batches of one piece of `read.plan()`. A task that is retried yields the same rows.

    Raises `DataLossError` if messages no longer exist, unless `failOnDataLoss` is false.
    """
    freeze_imports_once()
    # Opened in the worker, since a connection cannot be pickled.
    reader = RangeReader.of_piece(read, piece)
    began = time.monotonic()
    # Closes the reader even if Spark stops early, as with LIMIT.
    yield from batches_of(reader)
    seconds = time.monotonic() - began
    _LOG.info("%s: %d rows, %d bytes of records, %.3f s", reader.name, reader.rows, reader.size, seconds)


def batches_of(reader: RangeReader) -> Iterator[pa.RecordBatch]:
    """Yields the batches of a reader and then closes the reader."""
    pa = import_extra("pyarrow", "arrow")
    try:
        while (batch := reader.next_batch()) is not None:
            yield pa.record_batch(batch)
    finally:
        reader.close()
