"""A read of topics by the data source `rocketmq-columnar`: what was planned, as options of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from rmqfast.client.instance import ClientConfig
from rmqfast.spark.columnar import frame_or_none

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["columnar_topic_frame", "not_expressible"]


def columnar_topic_frame(
    spark: SparkSession,
    planned: Mapping[str, str],
    engine: Literal["auto", "columnar"],
    unable: str | None,
) -> DataFrame | None:
    """A planned read by the columnar source, or None where that does not load; the log says which, and why.

    Args:
        spark: The session; its JVM has the jar if `configure` was asked before it started.
        planned: What is read, with its pieces and how each broker is read.
        engine: With "columnar" it is worth a warning that it does not load.
        unable: Why this read is not for it; None where it is.

    Raises:
        RmqError: As the source says.

    Source: `TableProvider.getTable`.
    """

    def load() -> DataFrame:
        frame = spark.read.format("rocketmq-columnar").options(**planned).load()
        frame.schema  # noqa: B018  # now: Spark Connect looks for a source when it is asked for a schema
        return frame

    return frame_or_none(engine, unable, load)


def not_expressible(config: ClientConfig) -> str | None:
    """What of a cluster no option says; None where they say all.

    Example:
        >>> not_expressible(ClientConfig(name_server="10.0.0.1:9876", translate_address=str))
        'translate_address is a function of Python'

    Source: none.
    """
    if config.translate_address is not None:
        return "translate_address is a function of Python"
    usual = ClientConfig(name_server="a:1")
    if (config.request_timeout, config.connect_timeout) != (usual.request_timeout, usual.connect_timeout):
        return "its timeouts of connections and requests are fixed"
    return None
