"""Topics of a live cluster as a DataFrame: inside the JVM where the jar is, else by `mapInArrow` or `mapInPandas`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

from rmqfast._native import TopicRead, pieces_option
from rmqfast.arguments import Duration, integer, seconds
from rmqfast.client.instance import ClientConfig
from rmqfast.errors import ArgumentError
from rmqfast.spark.columnar import frame_or_none, load_frame, option_text
from rmqfast.spark.live.task import read_topic_piece
from rmqfast.spark.partitions import check_not_empty
from rmqfast.spark.reader import Engine, check_engine, task_frame
from rmqfast.spark.schema import row_schema
from rmqfast.spark.task import read_numbered
from rmqfast.store import ReadArguments, ScanRequest
from rmqfast.store.request import check_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rmqfast.store import ScanArguments

__all__ = ["TopicOffsets", "Via", "read_topic"]

#: In whose name brokers are asked, unless another one is given.
_GROUP = "rmqfast_spark"
#: Rows of a partition, unless a read says otherwise.
_MAX_ROWS = 1_000_000

Via = Literal["pull", "log", "auto", "mirror"]
"""How messages come from brokers."""
_ByBroker = Mapping[str, Mapping[int, int]]
TopicOffsets = _ByBroker | Mapping[str, _ByBroker] | Literal["earliest", "latest"]
"""A queue offset by broker and queue id, of several topics by topic, -1 for latest and -2 for earliest; or one word."""


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
    **arguments: Unpack[ReadArguments],
) -> DataFrame:
    """Reads messages of topics of a live cluster as a DataFrame; what is read is fixed now, by this call.

    Args:
        spark: The session.
        name_server: `host:port`, several separated by `;`; None where `config` or NAMESRV_ADDR says it.
        topic: The topic, or several. Topics that match a pattern, and single queues, are options of the data sources.
        start_offset: "earliest", "latest", or offsets by broker and queue, where -2 is earliest and -1 is latest; the
            broker "*" is each that is not named. Of several topics they are below the topic's name. A queue that is not
            named begins at its first message.
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
        via: "pull" asks for the messages; "log" reads the brokers' logs at their HA ports, by four connections at most;
            "auto" takes what costs less. What a log does not tell is pulled, and a warning says why. "mirror" reads the
            copies in `mirror_path`.
        mirror_path: The directory of `rmqfast mirror`, at the same place on the driver and on every executor. With
            "earliest" a queue begins where its copy does, which may have more than the broker; what copies do not have
            yet is not read.
        arguments: Which messages, and what of them: see `rmqfast.store.ReadArguments`. Brokers filter by `tags`, and by
            `sql` with `enablePropertyFilter=true`; for `keys` all messages are pulled, and the tasks look. `queue_ids`
            are those of each broker. With `verify_crc` a body that differs from its CRC is damage, and is left out.

    Raises:
        UnknownTopicError: The name servers do not know a topic.
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
    request = ScanRequest.of(None, cast("ScanArguments", arguments), broker_name=None)
    check_not_empty(request)
    if on_damage not in {"fail", "warn"}:
        raise ArgumentError(f"on_damage: expected 'fail' or 'warn', got {on_damage!r}")
    schema = row_schema(request.columns)
    cluster = _config(name_server, config)
    options = _texts(
        _cluster_options(cluster)
        | {
            # JSON, so that each text is one name
            "subscribe": json.dumps([topic] if isinstance(topic, str) else list(topic)),
            "group": group,
            # an empty expression is all tags, and no text of an option is empty
            "tags": request.tags or "*",
            "sql": request.sql,
            "keys": request.keys,
            "propertyNames": request.property_names,
            "queueIds": request.queue_ids,
            "startingOffsets": _offsets(topic, start_offset),
            "endingOffsets": _offsets(topic, end_offset),
            "startingTimestamp": request.start_time,
            "endingTimestamp": request.end_time,
            "minPartitions": min_partitions,
            "maxRowsPerPartition": max_rows_per_partition,
            "failOnDataLoss": on_damage == "fail",
            "verifyCrc": request.verify_crc,
            "pullBatchSize": pull_batch_size,
            "retryTimeoutMs": round(seconds("retry_timeout", retry_timeout) * 1000),
            "via": via,
            "mirrorPath": None if mirror_path is None else os.fspath(mirror_path),
            "maxBodyBytes": request.max_body_bytes,
        }
    )
    unable = _not_expressible(cluster)
    own_config = None if unable is None else cluster
    # an empty list has no text, and as an option it would mean "all"
    is_nothing = () in {request.keys, request.queue_ids}
    read = TopicRead("topic batch", options, schema.names, config=own_config)
    # in the driver and now: a task that is tried again must read the same offsets
    pieces, ways = read.plan_with_ways()
    if is_nothing:
        pieces = []
    if engine in {"auto", "columnar"}:
        planned = {**options, "pieces": pieces_option(pieces), "ways": ways}
        frame = frame_or_none("auto" if engine == "auto" else "columnar", unable, lambda: load_frame(spark, planned))
        if frame is not None:
            return frame if request.columns is None else frame.select(*request.columns)
    return task_frame(
        spark, engine, schema, partial(read_numbered, partial(read_topic_piece, read), pieces), len(pieces)
    )


def _not_expressible(config: ClientConfig) -> str | None:
    """Why no options can say how the cluster is reached; None if they can."""
    if config.translate_address is not None:
        return "translate_address is a function of Python"
    usual = ClientConfig(name_server="a:1")
    if (config.request_timeout, config.connect_timeout) != (usual.request_timeout, usual.connect_timeout):
        return "its timeouts of connections and requests are fixed"
    return None


def _cluster_options(config: ClientConfig) -> dict[str, Any]:
    """The options that say how a cluster is reached, as values."""
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


def _offsets(topic: str | Sequence[str], offsets: TopicOffsets) -> str:
    if isinstance(offsets, str):
        return offsets
    # offsets may be NumPy's, which JSON does not know
    return json.dumps({topic: offsets} if isinstance(topic, str) else offsets, default=partial(integer, "offset"))


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    texts = ((name, option_text(value)) for name, value in values.items())
    return {name: text for name, text in texts if text is not None}
