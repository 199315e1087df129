"""Topics of a live cluster as a DataFrame: by the columnar source if it can be used, otherwise in Python workers.

Source: `RocketMqUtils.createRDD` of rocketmq-spark.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

from rmqfast._native import TopicRead, pieces_option
from rmqfast.arguments import Duration
from rmqfast.client.instance import ClientConfig
from rmqfast.cluster.topic_options import TopicOffsets, Via, option_texts, selects_nothing, topic_options
from rmqfast.errors import ArgumentError
from rmqfast.spark.columnar import decode_options, frame_or_none, heads, load_frame
from rmqfast.spark.live.task import read_topic_piece
from rmqfast.spark.partitions import check_not_empty, with_schema_as_text
from rmqfast.spark.reader import Engine, check_engine, task_frame
from rmqfast.spark.schema import request_schema
from rmqfast.spark.task import read_numbered
from rmqfast.store import ReadArguments, ScanRequest
from rmqfast.store.request import DecodeArguments, check_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rmqfast.store import ScanArguments


class TopicReadArguments(ReadArguments, DecodeArguments, total=False):
    """Keyword arguments of `read_topic`, of which `ReadArguments` and `DecodeArguments` explain the names."""


#: Default consumer group for requests to brokers.
_GROUP = "rmqfast_spark"
#: Default limit of rows in a partition.
_MAX_ROWS = 1_000_000


def read_topic(
    spark: SparkSession,
    name_server: str | Sequence[str] | None,
    topic: str | Sequence[str],
    *,
    start_offset: TopicOffsets = "earliest",
    end_offset: TopicOffsets = "latest",
    engine: Engine = "auto",
    min_partitions: int | None = None,
    max_rows_per_partition: int = _MAX_ROWS,
    on_damage: Literal["fail", "warn"] = "fail",
    group: str = _GROUP,
    config: ClientConfig | None = None,
    pull_batch_size: int = 32,
    retry_timeout: Duration = 60.0,
    via: Via = "pull",
    mirror_path: str | os.PathLike[str] | None = None,
    **arguments: Unpack[TopicReadArguments],
) -> DataFrame:
    """Reads messages of a live cluster's topics as a DataFrame. This call fixes the range of messages.

    Args:
        spark: The session.
        name_server: `host:port`, several separated by `;`; None to use `config` or NAMESRV_ADDR.
        topic: One topic or several. Topic patterns and single queues exist only as options of the data sources.
        start_offset: "earliest", "latest", or offsets by broker and queue, where -2 is earliest and -1 is latest; the
            broker "*" stands for all brokers not listed. With several topics, offsets are below the topic's name. A
            queue that is not listed begins at its first message.
        end_offset: The same, exclusive; a queue that is not listed ends after its present last message.
        engine: "columnar" (inside the JVM), "arrow" (mapInArrow), "pandas" (mapInPandas, half as fast as that).
                "auto" is columnar if `configure` added its jar, otherwise arrow; the log names the engine.
        min_partitions: Minimum number of partitions, if there are enough messages.
        max_rows_per_partition: Limit of offsets in a partition.
        on_damage: "fail" ends the job if messages no longer exist, "warn" logs the loss to `rmqfast`.
        group: Consumer group for requests to brokers; no offset is committed.
        config: Accounts, TLS, addresses: all other settings of the connection.
        pull_batch_size: Messages to request per pull; brokers return at most 32, unless their limits were raised.
        retry_timeout: Time in seconds that a task waits for a broker that does not answer.
        via: "pull" requests the messages; "log" reads the brokers' logs at their HA ports, over at most four
            connections; "auto" takes the cheaper way. What a log does not contain is pulled, and a warning says why.
            "mirror" reads the copies in `mirror_path`.
        mirror_path: The directory of `rmqfast mirror`, at the same path on the driver and on every executor. With
            "earliest", a queue begins where its copy begins, which may be before the broker's first message; messages
            not copied yet are not read.
        arguments: Messages and columns to select, see `rmqfast.store.ReadArguments`, and the decoding of bodies, see
            `rmqfast.store.DecodeArguments`. Brokers filter by `tags`, and by
            `sql` with `enablePropertyFilter=true`; for `keys`, tasks pull all messages and filter themselves.
            `queue_ids` apply to each broker. With `verify_crc`, a body that differs from its CRC is omitted as damage.

    Raises:
        UnknownTopicError: The name servers do not know a topic.
        UnknownColumnError: The row has no such column.
        ExpressionError: `tags` or `sql` does not parse.
        ArgumentError: A value is out of range.
        DataLossError: A queue lacks an offset, unless `on_damage` is "warn".
        ClientError: A name server or a broker does not answer, or refuses.

    Example:
        >>> spark, cluster = getfixture("spark"), getfixture("live_cluster")
        >>> read_topic(spark, cluster.name_server, "orders", tags="paid", columns=["tags"]).distinct().collect()
        [Row(tags='paid')]
    """
    check_engine(engine)
    check_names(arguments, TopicReadArguments)
    request = ScanRequest.of(None, cast("ScanArguments", arguments), broker_name=None, microseconds=True)
    request = with_schema_as_text(request)
    check_not_empty(request)
    if on_damage not in {"fail", "warn"}:
        raise ArgumentError(f"on_damage: expected 'fail' or 'warn', got {on_damage!r}")
    schema = request_schema(request)
    cluster = _config(name_server, config)
    options = option_texts(
        _cluster_options(cluster)
        | topic_options(
            topic,
            request,
            start_offset=start_offset,
            end_offset=end_offset,
            fails_on_damage=on_damage == "fail",
            group=group,
            pull_batch_size=pull_batch_size,
            retry_timeout=retry_timeout,
            via=via,
            mirror_path=mirror_path,
        )
        | {"minPartitions": min_partitions, "maxRowsPerPartition": max_rows_per_partition}
        | decode_options(request)
    )
    unable = _not_expressible(cluster)
    own_config = None if unable is None else cluster
    read = TopicRead("topic batch", options, request.columns or schema.names, config=own_config)
    # Planned in the driver and now, since a retried task must read the same offsets.
    pieces, ways = read.plan_with_ways()
    if selects_nothing(request):
        pieces = []
    if engine in {"auto", "columnar"}:
        planned = {**options, "pieces": pieces_option(pieces), "ways": ways}
        if request.decode is not None and request.columns is not None:
            planned |= option_texts({"columns": list(dict.fromkeys(request.columns))})
        frame = frame_or_none("auto" if engine == "auto" else "columnar", unable, lambda: load_frame(spark, planned))
        if frame is not None:
            return frame if request.columns is None else frame.select(*heads(request))
    return task_frame(
        spark, engine, schema, partial(read_numbered, partial(read_topic_piece, read), pieces), len(pieces)
    )


def _not_expressible(config: ClientConfig) -> str | None:
    """Returns the reason why options cannot describe the connection. None if they can."""
    if config.translate_address is not None:
        return "translate_address is a function of Python"
    usual = ClientConfig(name_server="a:1")
    if (config.request_timeout, config.connect_timeout) != (usual.request_timeout, usual.connect_timeout):
        return "its timeouts of connections and requests are fixed"
    return None


def _cluster_options(config: ClientConfig) -> dict[str, Any]:
    tls = config.tls
    values: dict[str, Any] = {
        "nameServer": ";".join(config.name_servers),
        "accessKey": config.access_key,
        "secretKey": config.secret_key,
        "securityToken": config.security_token,
    }
    if tls is not None:
        values |= {
            "tls": True,
            "tlsTrust": tls.trust,
            "tlsCertificate": tls.certificate,
            "tlsKey": tls.key,
            "tlsVerify": tls.verify,
            "tlsCheckHost": tls.check_host,
        }
    return values


def _config(name_server: str | Sequence[str] | None, config: ClientConfig | None) -> ClientConfig:
    if name_server is None:
        return config or ClientConfig()
    return ClientConfig(name_server=name_server) if config is None else replace(config, name_server=name_server)
