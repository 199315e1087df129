"""A DataFrame sent to a topic by `mapInArrow`, on every PySpark from 3.5 on."""

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

__all__ = ["write_topic"]

_LOG = logging.getLogger("rmqfast.spark")
_COUNTS = ("rows", "bytes", "batches", "retries", "less_safe")


def write_topic(frame: DataFrame, name_server: str, topic: str | None = None, **options: Any) -> Written:
    """Sends the rows of a DataFrame to a topic, each at least once; returns when brokers have stored all of them.

    Its columns are `body` (binary, or a string), and as wanted `tags`, `keys` (a string or an array of strings),
    `properties` (a map), `queue_id`, `broker_name`, `delay_level`, `flag`, `topic`. What a read gives besides is
    left out.

    Args:
        frame: The rows; not those of a stream: call it in `foreachBatch` with each micro-batch.
        name_server: `host:port`, several separated by `;`, as driver and executors reach it.
        topic: Where all rows go; None where a column `topic` says it.
        options: Those of the data source in Python's words: access_key, secret_key, tls_trust, batch_size, ...

    Returns:
        Rows, bytes, requests, requests that were tried again.

    Raises:
        ArgumentError: An option or a column that cannot be; nothing was sent.
        TypeError: An option that there is not.
        UnknownColumnError: A column that messages do not have; nothing was sent.
        ClientError: The topic is not there; nothing was sent.
        PySparkException: A task failed; it tells the row. Other rows may be stored.

    Example:
        >>> import rmqfast
        >>> spark = getfixture("spark")
        >>> orders = spark.createDataFrame([("paid", "42"), ("sent", "43")], "body string, keys string")
        >>> with rmqfast.EmbeddedCluster() as cluster:
        ...     write_topic(orders, cluster.name_server, "orders").rows
        2

    Source: `DataFrame.mapInArrow`; the sink of rocketmq-spark.
    """
    if frame.isStreaming:
        raise ArgumentError(
            "expected a DataFrame that is no stream; call write_topic in foreachBatch, or use writeStream"
        )
    sink = sink_of(_texts({"name_server": name_server, "topic": topic, **options}), frame.schema)
    check_topic(sink)
    # only what is sent crosses to Python: `mapInArrow` prunes nothing by itself
    sent = frame.select(*sink.columns).mapInArrow(_sending(sink), ", ".join(f"{count} bigint" for count in _COUNTS))
    written = Written.total([Written(*row) for row in sent.collect()])
    _LOG.info("topic %s: %s", sink.topic or "of each row", written)
    return written


def _texts(arguments: dict[str, Any]) -> dict[str, str]:
    """Arguments as the options of the data source."""
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
