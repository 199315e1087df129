"""The stream reader for PySpark. Rust plans its batches.

Source: `DataSourceStreamReader`, `ReadLimit` of PySpark; `RocketMQSource` of rocketmq-spark.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from rmqfast._native import SparkOptions, SparkStream, TopicRead, read_store_piece
from rmqfast.spark.live.task import read_topic_piece
from rmqfast.spark.options import SourceOptions
from rmqfast.spark.partitions import Partition, StoreRead
from rmqfast.spark.schema import columns_of
from rmqfast.spark.task import read_partition

if TYPE_CHECKING:
    import pyarrow as pa


if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as AvailableNow
    from pyspark.sql.types import StructType
else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as AvailableNow
    except ImportError:  # before 4.2, Spark takes all messages in one batch
        AvailableNow = object

_LOG = logging.getLogger("rmqfast.spark")


class StreamSource(Protocol):
    """The source of a stream. It is pickled for the workers."""

    def open(self) -> SparkStream: ...

    def default_limit(self) -> Any:
        """Returns the `ReadLimit` that PySpark uses for a batch by default."""

    def unheard_limits(self) -> str | None:
        """Returns the limits that are set, for a warning of PySpark versions that ignore them. None if none are set."""

    def read(self, piece: bytes) -> Iterator[pa.RecordBatch]: ...


class StreamReader(DataSourceStreamReader, AvailableNow):
    """Implements PySpark's stream reader. Offsets are dicts for PySpark, and JSON strings for Rust."""

    def __init__(self, source: StreamSource) -> None:
        self._source = source
        self._native: SparkStream | None = None
        # End of the last batch, since PySpark before 4.2 does not pass it.
        self._at: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Omits the connections. PySpark pickles the reader for each task, and the task opens its own connections."""
        return {**self.__dict__, "_native": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Returns the start offsets of a stream without a checkpoint."""
        return self._offset(self._stream().initial())

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """Returns the end offsets of the next batch.

        PySpark before 4.2 passes neither the position nor a limit. Its batches take all messages.
        """
        limits = self._source.unheard_limits()
        if start is None and limits is not None:
            _LOG.warning("%s PySpark 4.2: a batch takes all there is", limits)
        # PySpark 4.2 passes `start` and `limit` if this method has two parameters, even with defaults.
        at = self._at if start is None else json.dumps(start)
        return self._offset(self._stream().latest(at, is_limited=start is not None and not _is_unlimited(limit)))

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        return self._source.default_limit()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fixes the current end of the source as the end of the stream."""
        self._stream().aim()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Returns the last known end of the source, for the query's progress report. None if no end is known yet."""
        text = self._stream().report()
        return None if text is None else json.loads(text)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        # After a restart from a checkpoint, Spark first plans the last batch again.
        self._at = json.dumps(end)
        return [InputPartition(piece) for piece in self._stream().pieces(json.dumps(start), self._at)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yields the batches of a partition. Without messages, Spark passes None or a partition with the value None."""
        if partition is not None and partition.value is not None:
            yield from self._source.read(partition.value)

    def commit(self, end: dict[str, Any]) -> None:
        """Called when Spark has stored all rows before `end`. Commits the offsets for the group, if there is one."""
        self._stream().commit(json.dumps(end))

    def stop(self) -> None:
        native, self._native = self._native, None
        if native is not None:
            native.close()

    def _stream(self) -> SparkStream:
        if self._native is None:
            self._native = self._source.open()
        return self._native

    def _offset(self, text: str) -> dict[str, Any]:
        self._at = text
        offset: dict[str, Any] = json.loads(text)
        return offset


def offsets_limit(most: int | None, least: int | None) -> Any:
    """Returns PySpark's `ReadLimit` for a number of messages."""
    from pyspark.sql.streaming import datasource

    # Spark has no limit with both bounds. It gets one of them, and the stream enforces both.
    if most is not None:
        return datasource.ReadMaxRows(most)
    return datasource.ReadAllAvailable() if least is None else datasource.ReadMinRows(least)


def bytes_limit(most: int | None) -> Any:
    """Returns PySpark's `ReadLimit` for a number of bytes."""
    from pyspark.sql.streaming import datasource

    return datasource.ReadAllAvailable() if most is None else datasource.ReadMaxBytes(most)


def _is_unlimited(limit: Any) -> bool:
    # By name, since PySpark before 4.2 lacks the class.
    return type(limit).__name__ == "ReadAllAvailable"


def topic_stream_reader(options: Mapping[str, str], schema: StructType) -> StreamReader:
    """Returns the stream reader of a topic.

    Its offsets, such as `{"topic": {"broker": {"0": 23}}}`, have the next offset by topic, broker name and queue id.
    """
    parsed = SparkOptions("topic stream", dict(options))
    values = parsed.values
    return StreamReader(
        _TopicSource(
            topics=TopicRead("topic stream", dict(options), columns_of(schema, parsed)),
            most=values["max_offsets_per_trigger"],
            least=values["min_offsets_per_trigger"],
        )
    )


@dataclass(frozen=True, kw_only=True)
class _TopicSource:
    topics: TopicRead
    most: int | None
    least: int | None

    def open(self) -> SparkStream:
        return SparkStream.of_topic(self.topics)

    def default_limit(self) -> Any:
        return offsets_limit(self.most, self.least)

    def unheard_limits(self) -> str | None:
        is_set = self.most is not None or self.least is not None
        return "maxOffsetsPerTrigger and minOffsetsPerTrigger need" if is_set else None

    def read(self, piece: bytes) -> Iterator[pa.RecordBatch]:
        return read_topic_piece(self.topics, piece)


def store_stream_reader(options: Mapping[str, str], schema: StructType) -> StreamReader:
    """Returns the stream reader. Its offsets `{"log": 123456}` are log positions, as in `MessageStore.tail`.

    Those of several stores are below the names of their brokers.
    """
    store = SourceOptions.of_stores(options, "store stream")[0]
    read = store.read_of_all(columns_of(schema, store.parsed))
    return StreamReader(_StoreSource(dict(options), read, store.values["max_bytes_per_trigger"]))


@dataclass(frozen=True)
class _StoreSource:
    options: dict[str, str]
    read_of: StoreRead
    most: int | None

    def open(self) -> SparkStream:
        return SparkStream.of_store(self.options)

    def default_limit(self) -> Any:
        return bytes_limit(self.most)

    def unheard_limits(self) -> str | None:
        return None if self.most is None else "maxBytesPerTrigger needs"

    def read(self, piece: bytes) -> Iterator[pa.RecordBatch]:
        part, broker = read_store_piece(piece)
        read = self.read_of if broker is None else self.read_of.of_store(*broker)
        return read_partition(read, Partition(*part))
