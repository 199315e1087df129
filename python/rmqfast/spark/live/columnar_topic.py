"""A read of a topic by the data source `rocketmq-columnar`: what was planned, as options of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from rmqfast._native import read_piece
from rmqfast.client.instance import ClientConfig
from rmqfast.spark.columnar import frame_or_none, option_text
from rmqfast.spark.live.topic_read import TopicRead

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["columnar_topic_frame"]


def columnar_topic_frame(
    spark: SparkSession, read: TopicRead, pieces: Sequence[bytes], engine: Literal["auto", "columnar"]
) -> DataFrame | None:
    """A planned read by the columnar source, or None where that does not load; the log says which, and why.

    Args:
        spark: The session; its JVM has the jar if `configure` was asked before it started.
        read: What is read.
        pieces: Its pieces, of `rmqfast._native.plan_topic`.
        engine: With "columnar" it is worth a warning that it does not load.

    Raises:
        RmqError: As the source says.

    Source: `TableProvider.getTable`.
    """

    def load() -> DataFrame:
        frame = spark.read.format("rocketmq-columnar").options(**_options(read, pieces)).load()
        frame.schema  # noqa: B018  # now: Spark Connect looks for a source when it is asked for a schema
        # an empty list has no text, and as an option it would mean "all"
        if read.request.keys == ():
            frame = frame.where("false")
        return frame if read.request.columns is None else frame.select(*read.request.columns)

    return frame_or_none(engine, _not_expressible(read.request.config), load)


def _not_expressible(config: ClientConfig) -> str | None:
    """What only the Python path can do."""
    if config.translate_address is not None:
        return "translate_address is a function of Python"
    usual = ClientConfig(name_server="a:1")
    if (config.request_timeout, config.connect_timeout) != (usual.request_timeout, usual.connect_timeout):
        return "its timeouts of connections and requests are fixed"
    return None


def _options(read: TopicRead, pieces: Sequence[bytes]) -> dict[str, str]:
    request, config, tls = read.request, read.request.config, read.request.config.tls
    values: dict[str, Any] = {
        "nameServer": config.name_server,
        "accessKey": config.access_key,
        "secretKey": config.secret_key,
        "securityToken": config.security_token,
        "topic": request.topic,
        "group": request.group,
        # an empty expression is all tags, and no text of an option is empty
        "tags": request.tags or "*",
        "sql": request.sql,
        "keys": request.keys,
        "propertyNames": request.property_names,
        "startingTimestamp": request.start_time,
        "endingTimestamp": request.end_time,
        "failOnDataLoss": request.on_damage == "fail",
        "verifyCrc": request.verify_crc,
        "pullBatchSize": request.batch,
        "pullTimeoutMs": round(request.timeout * 1000),
        "pullsUnderWay": request.depth,
        "retryTimeoutMs": round(request.patience * 1000),
        "maxBodyBytes": request.max_body_bytes,
        "pieces": json.dumps([read_piece(piece) for piece in pieces]),
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
    texts = ((name, option_text(value)) for name, value in values.items())
    return {name: text for name, text in texts if text is not None}
