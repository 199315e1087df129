"""Tasks of the sink, in a Python worker: send the rows of a partition.

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

__all__ = ["check_topic", "send_partition", "sink_of"]

_LOG = logging.getLogger("rmqfast.spark")


def sink_of(options: Mapping[str, str], schema: StructType) -> TopicSink:
    """The sink that options and the schema of a DataFrame ask for; it is pickled to the tasks.

    Raises:
        ArgumentError: An option or a column that cannot be.
        UnknownColumnError: A column that messages do not have.

    Example:
        >>> from pyspark.sql.types import StructType, StringType, LongType
        >>> schema = StructType().add("body", StringType()).add("queue_offset", LongType())
        >>> sink_of({"nameServer": "10.0.0.1:9876", "topic": "orders"}, schema).columns
        ['body']
    """
    return TopicSink(dict(options), [(field.name, field.dataType.simpleString()) for field in schema.fields])


def check_topic(sink: TopicSink) -> None:
    """Asks a name server whether the topic is there, before any task does.

    Args:
        sink: With a topic, or the rows say where they go, and the tasks find out.

    Raises:
        ClientError: Nobody has the topic and no broker would make it, or no name server answers; or several brokers
            have the queues that `queue_id` names, and there is no `broker_name`.
    """
    sink.check(_month())


def send_partition(sink: TopicSink, batches: Iterable[pa.RecordBatch]) -> Written:
    """Sends the rows of a partition, and waits until brokers have stored all of them.

    Raises:
        ClientError: A row that cannot be sent: says which, and why. Rows before it may be stored, and some behind it.
    """
    # columns that are not sent may have types that only Spark knows
    filled = (batch.select(sink.columns) for batch in batches if batch.num_rows)
    # a partition without rows opens no connection
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
    # FLUSH_DISK_TIMEOUT and the like: stored, so no error, but somebody should know
    if written.less_safe:
        _LOG.warning("partition %d: %d requests are stored less safely than asked for", partition, written.less_safe)
    return written


def _month() -> tuple[int, int]:
    return month_bounds(time.time_ns() // 1_000_000)


def _task() -> tuple[int, int]:
    """The partition, and which attempt at it this is."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return (context.partitionId(), context.attemptNumber()) if context is not None else (0, 0)
