"""What a task does with its partition, in a Python worker of an executor: pull, hand out batches."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rmqfast.client.ranges import RangePull
from rmqfast.spark.garbage import freeze_imports_once
from rmqfast.spark.live.topic_read import TopicPartition, TopicRead
from rmqfast.spark.zips import read_directories_once

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_numbered_topic", "read_topic_partition"]

_LOG = logging.getLogger("rmqfast.spark")


def read_topic_partition(read: TopicRead, partition: TopicPartition) -> Iterator[pa.RecordBatch]:
    """Yields the batches of one partition; whoever asks, and however often, gets the same rows.

    Args:
        read: What is read.
        partition: One of `plan_topic`.

    Raises:
        DataLossError: Messages are not there any more, unless `on_damage` is "warn".
        ClientError: A broker refuses, or does not answer for as long as the request's patience is.

    Source: `RangePull.batches`.
    """
    read_directories_once()
    freeze_imports_once()
    pull = RangePull(read.request, partition.ranges, partition.address)
    began = time.monotonic()
    yield from pull.batches()
    seconds = time.monotonic() - began
    first = partition.ranges[0]
    more = f" and {len(partition.ranges) - 1} more" if len(partition.ranges) > 1 else ""
    _LOG.info("%s%s: %d rows, %d bytes of records, %.3f s", first, more, pull.rows, pull.size, seconds)


def read_numbered_topic(
    read: TopicRead, partitions: Sequence[TopicPartition], numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yields the batches of the partitions whose numbers come, as a function for `mapInArrow`.

    Args:
        read: What is read.
        partitions: All of them.
        numbers: Batches whose first column has positions in `partitions`.

    Raises:
        RmqError: As `read_topic_partition`.

    Source: `read_topic_partition`.
    """
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield from read_topic_partition(read, partitions[number])
