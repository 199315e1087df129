"""A DataFrame sent to a topic by `mapInArrow`, on every PySpark from 3.5 on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rmqfast.errors import ArgumentError
from rmqfast.spark.sink.columns import sink_columns
from rmqfast.spark.sink.options import SinkOptions
from rmqfast.spark.sink.task import check_topic, send_partition
from rmqfast.spark.sink.written import Written, total

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
        options: The other attributes of `SinkOptions`: access_key, secret_key, tls_trust, batch_size, ...

    Returns:
        Rows, bytes, requests, requests that were tried again.

    Raises:
        ArgumentError: An option or a column that cannot be; nothing was sent.
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
    sink = SinkOptions(name_server=name_server, topic=topic, **options)
    columns = sink_columns(frame.schema, sink.topic)
    check_topic(sink, columns)
    # only what is sent crosses to Python: `mapInArrow` prunes nothing by itself
    counted = frame.select(*columns).mapInArrow(_sending(sink, columns), ", ".join(f"{c} bigint" for c in _COUNTS))
    written = total([Written(), *(Written(*row) for row in counted.collect())])
    _LOG.info("topic %s: %s", sink.topic or "of each row", written)
    return written


def _sending(
    options: SinkOptions, columns: Sequence[str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def send(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        counts = send_partition(options, columns, batches).counts()
        yield pa.RecordBatch.from_arrays([pa.array([count], pa.int64()) for count in counts], names=list(_COUNTS))

    return send
