"""The stream of a topic of a live cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rmqfast._native import SparkStream
from rmqfast.spark.live.options import LiveOptions
from rmqfast.spark.live.stream_reader import StreamReader
from rmqfast.spark.live.stream_triggers import offsets_limit
from rmqfast.spark.live.task import read_topic_piece
from rmqfast.spark.live.topic_read import TopicRead
from rmqfast.spark.schema import agreed

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["topic_stream_reader"]


def topic_stream_reader(options: Mapping[str, str], columns: Sequence[str]) -> StreamReader:
    """The stream reader of some columns; offsets are `{"topic": {"broker": {"0": 23}}}`, the next one of each queue.

    Args:
        options: Those of the data source.
        columns: Those of the schema.

    Raises:
        RmqError: As `LiveOptions.of` raises, an option that a stream has no use for, or other columns than the option
            `columns` says.

    Source: `RocketMQSource` of rocketmq-spark.
    """
    live = LiveOptions.of(options, "topic stream")
    return StreamReader(
        _TopicSource(
            # as Kafka's source: a stream without a checkpoint begins at the end, a batch at the beginning
            read_of=live.read(agreed(live.columns, columns), default_start="latest"),
            most=live.max_offsets_per_trigger,
            least=live.min_offsets_per_trigger,
            delay=live.max_trigger_delay_ms / 1000,
            commit_group=live.group if live.commit_offsets else None,
        )
    )


@dataclass(frozen=True, kw_only=True)
class _TopicSource:
    read_of: TopicRead
    most: int | None
    least: int | None
    delay: float
    commit_group: str | None

    def open(self) -> SparkStream:
        return SparkStream.of_topic(
            self.read_of, most=self.most, least=self.least, delay=self.delay, commit_group=self.commit_group
        )

    def default_limit(self) -> Any:
        return offsets_limit(self.most, self.least)

    def unheard_limits(self) -> str | None:
        is_set = self.most is not None or self.least is not None
        return "maxOffsetsPerTrigger and minOffsetsPerTrigger need" if is_set else None

    def read(self, piece: bytes) -> Iterator[pa.RecordBatch]:
        return read_topic_piece(self.read_of, piece)
