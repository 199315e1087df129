"""The options of `spark.read.format("rocketmq")`: names, texts to values, errors that name the choices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rmqfast.errors import ArgumentError
from rmqfast.spark.offsets import Offsets, check_not_expired, offset_bounds, parse_offsets
from rmqfast.spark.option_values import (
    body_bytes_of,
    check_times,
    flag_of,
    io_of,
    list_of,
    number_of,
    partitions_of,
    queue_ids_of,
    text_of,
    time_of,
    topic_of,
    values_of,
)
from rmqfast.spark.partitions import PARTITION_BYTES, StoreRead
from rmqfast.store import ScanRequest
from rmqfast.store.request import MAX_BODY_BYTES

__all__ = ["OPTION_NAMES", "SourceOptions"]

_CLUSTER = dict.fromkeys(
    ("nameServer", "group", "pullBatchSize", "pullTimeoutMs", "maxRowsPerPartition"),
    "is a live cluster's; this source reads a store directory, storePath",
)


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """The options of the data source as values.

    Example:
        >>> SourceOptions.of({"storepath": "/data/store", "queueIds": "0, 1"}).queue_ids
        (0, 1)

    Source: `RocketMQConfig` of rocketmq-spark, whose names are kept.
    """

    store_path: str
    topic: str | None = None
    tags: str = "*"
    sql: str | None = None
    keys: tuple[str, ...] | None = None
    queue_ids: tuple[int, ...] | None = None
    starting_offsets: str = "earliest"
    ending_offsets: str = "latest"
    starting_timestamp: int | None = None
    ending_timestamp: int | None = None
    columns: tuple[str, ...] | None = None
    min_partitions: int | None = None
    partition_bytes: int = PARTITION_BYTES
    fail_on_data_loss: bool = True
    verify_crc: bool = False
    max_body_bytes: int = MAX_BODY_BYTES
    broker_name: str | None = None
    commit_log_dirs: tuple[str, ...] = ()
    pushdown: bool = False
    max_bytes_per_trigger: int | None = None
    io: Literal["pread", "mmap"] = "pread"

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SourceOptions:
        """Reads options; their names may be in any case.

        Args:
            options: As Spark gives them to a data source.

        Raises:
            ArgumentError: An unknown name, a text that is no such value, a value out of range.

        Example:
            >>> SourceOptions.of({"path": "/data/store", "subExpression": "A || B"}).tags
            'A || B'

        Source: `DataSource.options` of PySpark.
        """
        values = values_of(options, _PARSERS, _CLUSTER)
        if "store_path" not in values:
            raise ArgumentError("option storePath: expected the directory of a store, got none")
        check_times(values)
        return cls(**values)

    def read(self, columns: Sequence[str] | None) -> StoreRead:
        """What shall be read, with offsets as the store now stands.

        Args:
            columns: Columns of the row, in order.

        Raises:
            CorruptError: A starting offset that has expired, unless `failOnDataLoss` is false.
            RmqError: As `StoreRead` and `open_store` raise.

        Source: as `SourceOptions`.
        """
        read = self._without_offsets(columns, None, None)
        start, end = self._offsets("startingOffsets"), self._offsets("endingOffsets")
        if start == "earliest" and end == "latest":
            return read
        queues = self._queues(read)
        first = offset_bounds("startingOffsets", start, queues, "start")
        if self.fail_on_data_loss:
            check_not_expired("startingOffsets", first, queues)
        last = offset_bounds("endingOffsets", end, queues, "end")
        return self._without_offsets(columns, first or None, last or None)

    def read_of_all(self, columns: Sequence[str] | None) -> StoreRead:
        """What shall be read of any stretch of the log, wherever offsets begin and end.

        Args:
            columns: Columns of the row, in order.

        Raises:
            RmqError: As `StoreRead` raises.

        Source: as `SourceOptions`.
        """
        return self._without_offsets(columns, None, None)

    def _offsets(self, name: Literal["startingOffsets", "endingOffsets"]) -> Offsets:
        text = self.starting_offsets if name == "startingOffsets" else self.ending_offsets
        return parse_offsets(name, text, self.topic, self.broker_name)

    def _queues(self, read: StoreRead) -> Mapping[int, tuple[int, int]]:
        if self.topic is None:
            raise ArgumentError("startingOffsets and endingOffsets need the option topic")
        with read.open() as store:
            return store.topics().get(self.topic, {})

    def _without_offsets(
        self, columns: Sequence[str] | None, start: Mapping[int, int] | None, end: Mapping[int, int] | None
    ) -> StoreRead:
        request = ScanRequest(
            topic=self.topic,
            queue_ids=self.queue_ids,
            tags=self.tags,
            sql=self.sql,
            keys=self.keys,
            start_offset=start,
            end_offset=end,
            start_time=self.starting_timestamp,
            end_time=self.ending_timestamp,
            columns=columns,
            microseconds=True,
            broker_name=self.broker_name,
            verify_crc=self.verify_crc,
            max_body_bytes=self.max_body_bytes,
        )
        return StoreRead(
            path=self.store_path,
            request=request,
            commit_log_dirs=self.commit_log_dirs,
            io=self.io,
            on_damage="fail" if self.fail_on_data_loss else "warn",
            min_partitions=self.min_partitions,
            partition_bytes=self.partition_bytes,
        )


_PARSERS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "storePath": ("store_path", text_of),
    "path": ("store_path", text_of),  # what load(path) sets
    "topic": ("topic", topic_of),
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
    "partitionBytes": ("partition_bytes", number_of),
    "failOnDataLoss": ("fail_on_data_loss", flag_of),
    "verifyCrc": ("verify_crc", flag_of),
    "maxBodyBytes": ("max_body_bytes", body_bytes_of),
    "brokerName": ("broker_name", text_of),
    "commitLogDirs": ("commit_log_dirs", list_of),
    "pushdown": ("pushdown", flag_of),
    "maxBytesPerTrigger": ("max_bytes_per_trigger", number_of),
    "io": ("io", io_of),
}
OPTION_NAMES = tuple(_PARSERS)
