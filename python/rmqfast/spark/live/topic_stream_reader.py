"""The data source's stream reader of a topic of a live cluster."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from rmqfast.message import MessageQueue
from rmqfast.spark.live.options import LiveOptions
from rmqfast.spark.live.stream_offsets import checkpoint_offsets, offsets_json
from rmqfast.spark.live.stream_triggers import AvailableNow, default_limit, is_unlimited
from rmqfast.spark.live.task import read_topic_piece
from rmqfast.spark.live.topic_stream import StreamLimits, TopicStream
from rmqfast.spark.schema import agreed

if TYPE_CHECKING:
    import pyarrow as pa

_LOG = logging.getLogger("rmqfast.spark")
__all__ = ["TopicStreamReader", "topic_stream_reader"]


def topic_stream_reader(options: Mapping[str, str], columns: Sequence[str]) -> TopicStreamReader:
    """The stream reader of some columns.

    Args:
        options: Those of the data source.
        columns: Those of the schema.

    Raises:
        RmqError: As `LiveOptions.of` raises, an option that a stream has no use for, or other columns than the option
            `columns` says.
    """
    live = LiveOptions.of(options, "topic stream")
    return TopicStreamReader(live, columns)


class TopicStreamReader(DataSourceStreamReader, AvailableNow):
    """Offsets are `{"topic": {"broker": {"0": 23}}}`: the next offset of each queue.

    Args:
        options: Those of the data source as values.
        columns: Columns of the row, in order.

    Source: `RocketMQSource`; `DataSourceStreamReader` of PySpark.
    """

    def __init__(self, options: LiveOptions, columns: Sequence[str]) -> None:
        # as Kafka's source: a stream without a checkpoint begins at the end, a batch at the beginning
        read = options.read(agreed(options.columns, columns), default_start="latest")
        self._read, self._topic = read, options.topic
        self._limits = StreamLimits(
            most=options.max_offsets_per_trigger,
            least=options.min_offsets_per_trigger,
            delay=options.max_trigger_delay_ms / 1000,
        )
        self._stream = TopicStream(read, self._limits, options.group if options.commit_offsets else None)
        # where the stream is, for PySpark before 4.2, which does not say it
        self._seen: dict[MessageQueue, int] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where a stream without a checkpoint begins."""
        return self._json(self._stream.initial())

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """How far the next batch goes.

        PySpark before 4.2 does not say where the stream is, nor whether the trigger wants all there is: it gets all.
        """
        if start is None and self._limits != StreamLimits(delay=self._limits.delay):
            _LOG.warning("maxOffsetsPerTrigger and minOffsetsPerTrigger need PySpark 4.2: a batch takes all there is")
        is_told = start is not None
        # PySpark from 4.2 on tells; it chooses that by the number of parameters, which defaults do not change
        at = self._offsets(start) if is_told else self._seen
        return self._json(self._stream.end(at, is_limited=is_told and not is_unlimited(limit)))

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """What the options say of a batch's size."""
        return default_limit(self._limits)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The stream ends with what there is now."""
        self._stream.aim()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Where the queues end, as far as is known, for the progress of the query."""
        return offsets_json(self._topic, self._stream.latest) if self._stream.latest else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """A task each."""
        first, last = self._offsets(start), self._offsets(end)
        # a restart from a checkpoint asks for the tasks of the last batch first
        self._seen = last
        return [InputPartition(piece) for piece in self._stream.pieces(first, last)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Batches of one partition; where there is none, it is None or has None."""
        if partition is not None and partition.value is not None:
            yield from read_topic_piece(self._read, partition.value)

    def commit(self, end: dict[str, Any]) -> None:
        """Spark will not ask for what is before `end` any more."""
        self._stream.commit(self._offsets(end))

    def stop(self) -> None:
        """The query ended."""
        self._stream.stop()

    def _offsets(self, members: Any) -> dict[MessageQueue, int]:
        return checkpoint_offsets(members, self._topic)

    def _json(self, offsets: dict[MessageQueue, int]) -> dict[str, Any]:
        self._seen = offsets
        return offsets_json(self._topic, offsets)
