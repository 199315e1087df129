"""The options of `spark.read.format("rocketmq")` for a live cluster: names, texts to values."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rmqfast.client.ranges import RangeRequest
from rmqfast.errors import ArgumentError
from rmqfast.spark.cluster_options import CLUSTER_PARSERS, ClusterOptions
from rmqfast.spark.live.offsets import parse_offsets
from rmqfast.spark.live.topic_read import MAX_ROWS, TopicRead
from rmqfast.spark.option_values import (
    body_bytes_of,
    check_times,
    flag_of,
    list_of,
    number_of,
    one_topic_of,
    partitions_of,
    queue_ids_of,
    text_of,
    time_of,
    values_of,
)
from rmqfast.store.request import MAX_BODY_BYTES

__all__ = ["GROUP", "LIVE_OPTION_NAMES", "LiveOptions"]

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
    group: str = GROUP
    tags: str = "*"
    sql: str | None = None
    keys: tuple[str, ...] | None = None
    queue_ids: tuple[int, ...] | None = None
    starting_offsets: str = ""
    ending_offsets: str = "latest"
    starting_timestamp: int | None = None
    ending_timestamp: int | None = None
    columns: tuple[str, ...] | None = None
    min_partitions: int | None = None
    max_rows_per_partition: int = MAX_ROWS
    fail_on_data_loss: bool = True
    verify_crc: bool = False
    pull_batch_size: int = 32
    pull_timeout_ms: int = 10_000
    pulls_under_way: int = 16
    retry_timeout_ms: int = 60_000
    max_body_bytes: int = MAX_BODY_BYTES
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 900_000
    commit_offsets: bool = False
    pushdown: bool = False

    @classmethod
    def of(cls, options: Mapping[str, str]) -> LiveOptions:
        """Reads options; their names may be in any case.

        Args:
            options: As Spark gives them to a data source.

        Raises:
            ArgumentError: An unknown name, a text that is no such value, a value out of range, no topic.

        Example:
            >>> LiveOptions.of({"nameServer": "10.0.0.1:9876", "topic": "orders", "subExpression": "A || B"}).tags
            'A || B'

        Source: `DataSource.options` of PySpark.
        """
        values = values_of(options, _PARSERS, _STORE)
        for name, attribute in (("nameServer", "name_server"), ("topic", "topic")):
            if attribute not in values:
                raise ArgumentError(f"option {name}: a live cluster is read by topic; expected one, got none")
        if values.get("commit_offsets") and "group" not in values:
            raise ArgumentError("option commitOffsets: needs the option group, which has no other consumers")
        check_times(values)
        return cls(**values)

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
            start_time=self.starting_timestamp,
            end_time=self.ending_timestamp,
            microseconds=True,
            verify_crc=self.verify_crc,
            on_damage="fail" if self.fail_on_data_loss else "warn",
            batch=self.pull_batch_size,
            depth=self.pulls_under_way,
            timeout=self.pull_timeout_ms / 1000,
            patience=self.retry_timeout_ms / 1000,
            max_body_bytes=self.max_body_bytes,
            sub_version=int(time.time() * 1000),
        )
        return TopicRead(
            request=request,
            start=parse_offsets("startingOffsets", self._start(default_start), self.topic),
            end=parse_offsets("endingOffsets", self.ending_offsets, self.topic),
            queue_ids=self.queue_ids,
            min_partitions=self.min_partitions,
            max_rows=self.max_rows_per_partition,
        )

    def _start(self, default: str) -> str:
        # a time is looked for in all there is
        return self.starting_offsets or ("earliest" if self.starting_timestamp is not None else default)


def _pull_batch(name: str, text: str) -> int:
    return number_of(name, text, most=1 << 16)


def _pulls(name: str, text: str) -> int:
    return number_of(name, text, most=1024)


def _milliseconds(name: str, text: str) -> int:
    return number_of(name, text, most=86_400_000)


_STORE = dict.fromkeys(
    ("storePath", "path", "partitionBytes", "brokerName", "commitLogDirs", "io"),
    "is of a store directory; this read has nameServer, a live cluster",
)
_PARSERS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "nameServer": ("name_server", text_of),
    "topic": ("topic", one_topic_of),
    "group": ("group", text_of),
    "tags": ("tags", text_of),
    "subExpression": ("tags", text_of),
    "sql": ("sql", text_of),
    "keys": ("keys", list_of),
    "queueIds": ("queue_ids", queue_ids_of),
    "startingOffsets": ("starting_offsets", text_of),
    "endingOffsets": ("ending_offsets", text_of),
    "startingTimestamp": ("starting_timestamp", time_of),
    "endingTimestamp": ("ending_timestamp", time_of),
    "columns": ("columns", list_of),
    "minPartitions": ("min_partitions", partitions_of),
    "maxRowsPerPartition": ("max_rows_per_partition", number_of),
    "failOnDataLoss": ("fail_on_data_loss", flag_of),
    "verifyCrc": ("verify_crc", flag_of),
    "pullBatchSize": ("pull_batch_size", _pull_batch),
    "pullTimeoutMs": ("pull_timeout_ms", _milliseconds),
    "pullsUnderWay": ("pulls_under_way", _pulls),
    "retryTimeoutMs": ("retry_timeout_ms", _milliseconds),
    "maxBodyBytes": ("max_body_bytes", body_bytes_of),
    **CLUSTER_PARSERS,
    "maxOffsetsPerTrigger": ("max_offsets_per_trigger", number_of),
    "minOffsetsPerTrigger": ("min_offsets_per_trigger", number_of),
    "maxTriggerDelayMs": ("max_trigger_delay_ms", _milliseconds),
    "commitOffsets": ("commit_offsets", flag_of),
    "pushdown": ("pushdown", flag_of),
}
LIVE_OPTION_NAMES = tuple(_PARSERS)
