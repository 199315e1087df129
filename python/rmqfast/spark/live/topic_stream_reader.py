"""Streams topics of a live cluster.

Source: `RocketMQSource` of rocketmq-spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rmqfast._native import SparkOptions, SparkStream, TopicRead
from rmqfast.spark.live.stream_reader import StreamReader, offsets_limit
from rmqfast.spark.live.task import read_topic_piece

if TYPE_CHECKING:
    import pyarrow as pa


def topic_stream_reader(options: Mapping[str, str], columns: Sequence[str]) -> StreamReader:
    """Returns the stream reader of a topic.

    Its offsets, such as `{"topic": {"broker": {"0": 23}}}`, have the next offset by topic, broker name and queue id.
    """
    values = SparkOptions("topic stream", dict(options)).values
    return StreamReader(
        _TopicSource(
            topics=TopicRead("topic stream", dict(options), columns),
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
