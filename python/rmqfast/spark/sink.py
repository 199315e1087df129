"""Sends a DataFrame to topics. Each task, in a Python worker, sends the rows of a partition.

Source: `DataSource.writer` of PySpark; RocketMQ's `DefaultMQProducer.send`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from rmqfast._native import SparkOptions, TopicSink, Written
from rmqfast.arguments import unknown_argument
from rmqfast.client.instance.ids import month_bounds
from rmqfast.errors import ArgumentError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
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
    """Sends the rows of a partition, waits until brokers have stored all of them, and returns their counts.

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


_COUNTS = ("rows", "bytes", "batches", "retries", "less_safe")


def write_topic(frame: DataFrame, name_server: str, topic: str | None = None, **options: Any) -> Written:
    """Sends the rows of a DataFrame to a topic, each at least once. Returns counts when all rows are stored.

    Columns are `body` (binary, or a string) and optionally `tags`, `keys` (a string or an array of strings),
    `properties` (a map), `queue_id`, `broker_name`, `delay_level`, `flag`, `topic`. The other columns of a read are
    ignored.

    Args:
        frame: The rows. For a stream, call this in `foreachBatch` with each micro-batch.
        name_server: `host:port`, several separated by `;`, as driver and executors reach it.
        topic: Topic of all rows; None if the column `topic` names it.
        options: Options of the data source as Python names: access_key, secret_key, tls_trust, batch_size, ...

    Raises:
        ArgumentError: An option or a column type is wrong; nothing was sent.
        TypeError: An option does not exist.
        UnknownColumnError: A column is unknown to messages; nothing was sent.
        ClientError: The topic does not exist; nothing was sent.
        PySparkException: A task failed; the error names the row. Other rows may be stored.

    Example:
        >>> import rmqfast
        >>> spark = getfixture("spark")
        >>> orders = spark.createDataFrame([("paid", "42"), ("sent", "43")], "body string, keys string")
        >>> with rmqfast.EmbeddedCluster() as cluster:
        ...     write_topic(orders, cluster.name_server, "orders").rows
        2
    """
    if frame.isStreaming:
        raise ArgumentError(
            "expected a DataFrame that is no stream; call write_topic in foreachBatch, or use writeStream"
        )
    sink = sink_of(_texts({"name_server": name_server, "topic": topic, **options}), frame.schema)
    check_topic(sink)
    # Only columns to send should cross to Python, since `mapInArrow` prunes none itself.
    sent = frame.select(*sink.columns).mapInArrow(_sending(sink), ", ".join(f"{count} bigint" for count in _COUNTS))
    written = Written.total([Written(*row) for row in sent.collect()])
    _LOG.info("topic %s: %s", sink.topic or "of each row", written)
    return written


def _texts(arguments: dict[str, Any]) -> dict[str, str]:
    """Returns arguments as strings, under the names of the data source's options."""
    names = {argument: name for name, argument in SparkOptions.arguments("sink")}
    for argument in arguments:
        if argument not in names:
            raise unknown_argument(argument, names, of="write_topic")
    given = {names[argument]: value for argument, value in arguments.items() if value is not None}
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()}


def _sending(sink: TopicSink) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def send(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        counts = send_partition(sink, batches).counts()
        yield pa.RecordBatch.from_arrays([pa.array([count], pa.int64()) for count in counts], names=list(_COUNTS))

    return send
