"""Sends a DataFrame to a topic with `mapInArrow`, for every PySpark from 3.5 on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rmqfast._native import SparkOptions, TopicSink, Written
from rmqfast.arguments import unknown_argument
from rmqfast.errors import ArgumentError
from rmqfast.spark.sink.task import check_topic, send_partition, sink_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_LOG = logging.getLogger("rmqfast.spark")
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
