"""A topic of a live cluster as a DataFrame: inside the JVM where the jar is, else by `mapInArrow` or `mapInPandas`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack

from rmqfast._native import plan_topic
from rmqfast.client.instance import ClientConfig
from rmqfast.client.ranges import RangeRequest
from rmqfast.spark.live.columnar_topic import columnar_topic_frame
from rmqfast.spark.live.options import GROUP
from rmqfast.spark.live.task import read_numbered_topic, read_topic_piece
from rmqfast.spark.live.topic_read import MAX_ROWS, TopicOffsets, TopicRead
from rmqfast.spark.reader import Engine, check_engine, task_numbers
from rmqfast.spark.schema import row_schema
from rmqfast.store import ReadArguments, time_range
from rmqfast.store.request import check_names

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["read_topic"]


def read_topic(
    spark: SparkSession,
    name_server: str | Sequence[str] | None,
    topic: str,
    *,
    start_offset: TopicOffsets = "earliest",
    end_offset: TopicOffsets = "latest",
    engine: Engine = "auto",
    min_partitions: int | None = None,
    max_rows_per_partition: int = MAX_ROWS,
    on_damage: Literal["fail", "warn"] = "fail",
    group: str = GROUP,
    config: ClientConfig | None = None,
    pull_batch_size: int = 32,
    retry_timeout: float = 60.0,
    **arguments: Unpack[ReadArguments],
) -> DataFrame:
    """Reads messages of a topic of a live cluster as a DataFrame; what is read is fixed now, by this call.

    Args:
        spark: The session.
        name_server: `host:port`, several separated by `;`; None where `config` or NAMESRV_ADDR says it.
        topic: The topic.
        start_offset: "earliest", "latest", or offsets by broker and queue, where -2 is earliest and -1 is latest; the
            broker "*" is each that is not named. A queue that is not named begins at its first message.
        end_offset: The same, not included; a queue that is not named ends behind its last message of now.
        engine: "columnar" (inside the JVM), "arrow" (mapInArrow), "pandas" (mapInPandas, half as fast as that).
            "auto" is columnar where `configure` added its jar, else arrow; the log says which.
        min_partitions: At least so many partitions, where there are as many messages.
        max_rows_per_partition: Offsets of a partition at most.
        on_damage: "fail" ends the job when messages are not there any more, "warn" logs that to `rmqfast`.
        group: In whose name brokers are asked; nothing is committed for it.
        config: Accounts, TLS, addresses: everything else about the cluster.
        pull_batch_size: Messages that a pull asks for; brokers give 32 at most, unless their limits were raised.
        retry_timeout: How long a task waits for a broker that is away, in seconds.
        arguments: Which messages, and what of them: see `rmqfast.store.ReadArguments`. Brokers filter by `tags`, and by
            `sql` with `enablePropertyFilter=true`; for `keys` all messages are pulled, and the tasks look. `queue_ids`
            are those of each broker. With `verify_crc` a body that differs from its CRC is damage, and is left out.

    Raises:
        UnknownTopicError: The name servers do not know the topic.
        UnknownColumnError: The row has no such column.
        ExpressionError: `tags` or `sql` does not parse.
        ArgumentError: A value out of range.
        DataLossError: An offset that a queue does not have, unless `on_damage` is "warn".
        ClientError: A name server or a broker does not answer, or refuses.

    Example:
        >>> spark, cluster = getfixture("spark"), getfixture("live_cluster")
        >>> read_topic(spark, cluster.name_server, "orders", tags="paid", columns=["tags"]).distinct().collect()
        [Row(tags='paid')]

    Source: `RocketMqUtils.createRDD` of rocketmq-spark.
    """
    check_engine(engine)
    check_names(arguments, ReadArguments)
    values: dict[str, Any] = dict(arguments)
    columns, queue_ids = values.pop("columns", None), values.pop("queue_ids", None)
    schema = row_schema(columns)
    values["start_time"], values["end_time"] = time_range(values.get("start_time"), values.get("end_time"))
    request = RangeRequest(
        config=_config(name_server, config),
        topic=topic,
        group=group,
        columns=None if columns is None else tuple(columns),
        microseconds=True,
        on_damage=on_damage,
        batch=pull_batch_size,
        patience=retry_timeout,
        sub_version=int(time.time() * 1000),
        **values,
    )
    read = TopicRead(
        request=request,
        start=start_offset,
        end=end_offset,
        queue_ids=None if queue_ids is None else tuple(queue_ids),
        min_partitions=min_partitions,
        max_rows=max_rows_per_partition,
    )
    # in the driver and now: a task that is tried again must read the same offsets
    pieces = plan_topic(read)
    if engine in {"auto", "columnar"}:
        frame = columnar_topic_frame(spark, read, pieces, "auto" if engine == "auto" else "columnar")
        if frame is not None:
            return frame
    # only numbers go through Spark; the pieces are pickled with the function
    numbers = task_numbers(spark, pieces)
    if engine == "pandas":
        made: DataFrame = numbers.mapInPandas(_in_pandas(read, pieces), schema)
    else:
        made = numbers.mapInArrow(partial(read_numbered_topic, read, pieces), schema)
    return made


def _config(name_server: str | Sequence[str] | None, config: ClientConfig | None) -> ClientConfig:
    if name_server is None:
        return config or ClientConfig()
    from dataclasses import replace

    return ClientConfig(name_server=name_server) if config is None else replace(config, name_server=name_server)


def _in_pandas(read: TopicRead, pieces: list[bytes]) -> Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    def frames(numbers: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        from rmqfast.spark.frames import arrow_frame

        for frame in numbers:
            for number in frame.iloc[:, 0]:
                yield from map(arrow_frame, read_topic_piece(read, pieces[number]))

    return frames
