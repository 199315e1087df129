"""The options of `spark.read.format("rocketmq")` for a live cluster, as values."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rmqfast._native import SparkOptions, parse_topic_offsets
from rmqfast.client.ranges import RangeRequest
from rmqfast.spark.cluster_options import ClusterOptions
from rmqfast.spark.live.topic_read import TopicRead

__all__ = ["GROUP", "LiveOptions"]

#: In whose name brokers are asked, unless the option `group` says another one.
GROUP = "rmqfast_spark"


@dataclass(frozen=True, kw_only=True)
class LiveOptions(ClusterOptions):
    """The options of the data source for a live cluster as values.

    Example:
        >>> LiveOptions.of({"nameServer": "10.0.0.1:9876", "topic": "orders", "queueids": "0,1"}).queue_ids
        (0, 1)

    Source: `RocketMQConfig` of rocketmq-spark, whose names are kept.
    """

    topic: str
    group: str
    tags: str
    sql: str | None = None
    keys: tuple[str, ...] | None = None
    queue_ids: tuple[int, ...] | None = None
    starting_offsets: str | None = None
    ending_offsets: str
    start_time: int | None = None
    end_time: int | None = None
    columns: tuple[str, ...] | None = None
    property_names: tuple[str, ...] | None = None
    min_partitions: int | None = None
    max_rows_per_partition: int
    fail_on_data_loss: bool
    verify_crc: bool
    pull_batch_size: int
    pull_timeout_ms: int
    pulls_under_way: int
    retry_timeout_ms: int
    max_body_bytes: int
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int
    commit_offsets: bool
    pushdown: bool

    @classmethod
    def of(cls, options: Mapping[str, str], kind: str = "topic batch") -> LiveOptions:
        """Reads options; their names may be in any case.

        Args:
            options: As Spark gives them to a data source.
            kind: "topic batch", or "topic stream", which has no end.

        Raises:
            ArgumentError: An unknown name, a text that is no such value, a value out of range, no topic.

        Example:
            >>> LiveOptions.of({"nameServer": "10.0.0.1:9876", "topic": "orders", "subExpression": "A || B"}).tags
            'A || B'

        Source: `DataSource.options` of PySpark.
        """
        # one table of options, in Rust, for this source and the JVM's
        values = SparkOptions(kind, dict(options)).values
        return cls(**{name: value for name, value in values.items() if value is not None})

    def read(
        self, columns: Sequence[str] | None, *, default_start: Literal["earliest", "latest"] = "earliest"
    ) -> TopicRead:
        """What shall be read; where queues begin and end is asked when it is planned.

        Args:
            columns: Columns of the row, in order.
            default_start: Where queues begin, unless the options say.

        Raises:
            RmqError: As `TopicRead` raises.

        Source: as `LiveOptions`.
        """
        request = RangeRequest(
            config=self.client_config(),
            topic=self.topic,
            group=self.group,
            tags=self.tags,
            sql=self.sql,
            keys=self.keys,
            columns=None if columns is None else tuple(columns),
            property_names=self.property_names,
            start_time=self.start_time,
            end_time=self.end_time,
            # Spark's timestamps are microseconds
            microseconds=True,
            verify_crc=self.verify_crc,
            on_damage="fail" if self.fail_on_data_loss else "warn",
            batch=self.pull_batch_size,
            depth=self.pulls_under_way,
            timeout=self.pull_timeout_ms / 1000,
            patience=self.retry_timeout_ms / 1000,
            max_body_bytes=self.max_body_bytes,
            # `SubscriptionData` of Java, too, has the time as its version
            sub_version=int(time.time() * 1000),
        )
        return TopicRead(
            request=request,
            start=parse_topic_offsets("startingOffsets", self._start(default_start), self.topic),
            end=parse_topic_offsets("endingOffsets", self.ending_offsets, self.topic),
            queue_ids=self.queue_ids,
            min_partitions=self.min_partitions,
            max_rows=self.max_rows_per_partition,
        )

    def _start(self, default: str) -> str:
        # a time is looked for in all there is
        return self.starting_offsets or ("earliest" if self.start_time is not None else default)
