"""Tasks of the sink in a Python worker. A task sends the rows of a partition.

Source: `DataSource.writer` of PySpark, `DefaultMQProducer.send`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING

from rmqfast._native import TopicSink, Written
from rmqfast.client.instance.ids import month_bounds

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_LOG = logging.getLogger("rmqfast.spark")


def sink_of(options: Mapping[str, str], schema: StructType) -> TopicSink:
    """Returns the sink for options and the schema of a DataFrame. The sink is pickled for the tasks.

    Raises `ArgumentError` for a wrong option or column type, and `UnknownColumnError` for a column unknown to messages.
    """
    return TopicSink(dict(options), [(field.name, field.dataType.simpleString()) for field in schema.fields])


def check_topic(sink: TopicSink) -> None:
    """Asks a name server for the topic before tasks start. Topics that rows name are only checked in the tasks.

    Raises:
        ClientError: The topic does not exist and no broker would create it, no name server answers, or several brokers
            have a queue named by `queue_id` alone, without `broker_name`.
    """
    sink.check(_month())


def send_partition(sink: TopicSink, batches: Iterable[pa.RecordBatch]) -> Written:
    """Sends the rows of a partition, and waits until brokers have stored all of them.

    Raises:
        ClientError: A row cannot be sent; the message names the row. Rows before it and some after it may be stored.
    """
    # Other columns may have types that only Spark knows.
    filled = (batch.select(sink.columns) for batch in batches if batch.num_rows)
    # A partition without rows opens no connection.
    first = next(filled, None)
    if first is None:
        return Written()
    partition, attempt = _task()
    began = time.monotonic()
    with closing(sink.open(partition, _month())) as writer:
        writer.write(first)
        for batch in filled:
            writer.write(batch)
        written = writer.finish()
    seconds = time.monotonic() - began
    _LOG.info("partition %d, attempt %d: %s to %s, %.2f s", partition, attempt, written, sink.topic, seconds)
    # Answers such as FLUSH_DISK_TIMEOUT: stored, so not an error, but worth a warning.
    if written.less_safe:
        _LOG.warning("partition %d: %d requests are stored less safely than asked for", partition, written.less_safe)
    return written


def _month() -> tuple[int, int]:
    return month_bounds(time.time_ns() // 1_000_000)


def _task() -> tuple[int, int]:
    """Returns the partition id and the attempt number of the task that is running."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return (context.partitionId(), context.attemptNumber()) if context is not None else (0, 0)
